"""Answering what the management API wants to know of a document; see `config.inspection`."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import attrs
import msgspec

from vsr.config.attempt import Code, Reason, Stage
from vsr.config.child import cleaned, redactor_of, staged_reasons
from vsr.config.diff import Change, Side, differences
from vsr.config.environment import Expanded
from vsr.config.files import DocumentFiles
from vsr.config.inspection import Inspect, Inspected, Mode
from vsr.config.load import load
from vsr.config.position import Value
from vsr.config.report import Report
from vsr.config.show import plain, render
from vsr.config.source import ValidDocument, read_bytes
from vsr.errors import ConfigRejected, Problem


@attrs.frozen
class Subject:
    """The document of one place, in one environment."""

    environ: Mapping[str, str]
    file: Path | None

    def of(self, question: Inspect) -> Inspected:
        """Return what becomes of a text."""
        candidate = question.text
        if question.mode is Mode.MERGE:
            try:
                candidate = _merged(question.base or b"{}\n", question.text)
            except ConfigRejected as error:
                return Inspected(candidate, _without_quotes(error))
        allowed = None if question.may_read_files else _named_in(question.known)
        report = self._report(allowed)
        try:
            valid = read_bytes(candidate, self.environ, report)
        except ConfigRejected as error:
            redactor = redactor_of(report, self.environ)
            return Inspected(candidate, cleaned(staged_reasons(error), redactor))
        lines = valid.loaded.lines
        warned = staged_reasons(ConfigRejected(valid.warnings))
        return Inspected(
            candidate,
            warnings=cleaned(warned, redactor_of(report, self.environ)),
            json=msgspec.Raw(
                msgspec.json.encode(plain(valid.document, lines, reveals=question.reveals))
            ),
            yaml=render(valid.document, lines),
            changes=self._changes(question.base, valid),
        )

    def _changes(self, base: bytes | None, valid: ValidDocument) -> tuple[Change, ...] | None:
        if base is None:
            return None
        try:
            before = read_bytes(base, self.environ, self._report(None))
        except ConfigRejected:
            return None
        return differences(_side(before), _side(valid))

    def _report(self, allowed: frozenset[str] | None) -> Report:
        files = DocumentFiles(None if self.file is None else self.file.parent, allowed)
        return Report("document" if self.file is None else str(self.file), files=files)


def _named_in(document: bytes) -> frozenset[str]:
    """Return all texts of a document as it is written: those among them that name files will do."""
    loaded = load(document, {}, Report("document"))
    found = () if loaded is None else _texts(loaded.values)
    return frozenset(text for each in found for text in (each, each.removeprefix("file:")))


def _texts(value: Value) -> Iterator[str]:
    if isinstance(value, str):
        yield value.authored if isinstance(value, Expanded) else value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)


def _side(valid: ValidDocument) -> Side:
    lines = valid.loaded.lines
    return Side(plain(valid.document, lines, reveals=True), plain(valid.document, lines))


def _merged(base: bytes, patch: bytes) -> bytes:
    # Loaded where it is needed: it reads YAML with another library.
    from vsr.config.migrate.merge import merge_text  # noqa: PLC0415

    texts = []
    for name, data in (("document", base), ("patch", patch)):
        try:
            texts.append(data.decode())
        except UnicodeDecodeError:
            problem = Problem("", "is not UTF-8 text", file=name, line=1)
            raise ConfigRejected([problem]) from None
    return merge_text(*texts, file="document").encode()


def _without_quotes(error: ConfigRejected) -> tuple[Reason, ...]:
    """Return the reasons against merging, which quote no values."""
    return tuple(
        Reason(Stage.PARSE, Code.INVALID_DOCUMENT, each.told, each.path, each.file, each.line)
        for each in error.problems
    )
