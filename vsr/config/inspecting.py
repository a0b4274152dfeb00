"""Answering what the management API wants to know of a document; see `config.inspection`."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import attrs
import msgspec

from vsr.config.attempt import Code, Reason, Stage, reasons_of
from vsr.config.compiling import cleaned, redactor_of, staged_reasons
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
    """Documents in one environment."""

    environ: Mapping[str, str]

    def of(self, question: Inspect) -> tuple[Inspected, ValidDocument | None]:
        """Return what becomes of a text, and the document if it is valid."""
        candidate = question.text
        try:
            if question.recipe is not None:
                candidate = _with_recipe(question)
            elif question.mode is Mode.MERGE:
                candidate = _merged(question)
        except ConfigRejected as error:
            return Inspected(candidate, _without_quotes(error)), None
        allowed = None if question.may_read_files else _named_in(question.known)
        report = _report(question, allowed)
        try:
            valid = read_bytes(candidate, self.environ, report)
        except ConfigRejected as error:
            redactor = redactor_of(report, self.environ)
            return Inspected(candidate, cleaned(staged_reasons(error), redactor)), None
        warned = staged_reasons(ConfigRejected(valid.warnings))
        return Inspected(
            candidate,
            warnings=cleaned(warned, redactor_of(report, self.environ)),
            json=_json(valid, question),
            yaml=render(valid.document, valid.loaded.lines) if question.wants_yaml else "",
            changes=self._changes(question, valid),
        ), valid

    def _changes(self, question: Inspect, valid: ValidDocument) -> tuple[Change, ...] | None:
        if question.base is None or not question.compares:
            return None
        try:
            before = read_bytes(question.base, self.environ, _report(question))
        except ConfigRejected:
            return None
        return differences(_side(before), _side(valid))


def _report(question: Inspect, allowed: frozenset[str] | None = None) -> Report:
    file = question.file
    files = DocumentFiles(None if file is None else Path(file).parent, allowed)
    name = file if file is not None and question.is_persisted else "document"
    return Report(name, files=files)


def _json(valid: ValidDocument, question: Inspect) -> msgspec.Raw:
    if not question.wants_json:
        return msgspec.Raw(b"null")
    shown = plain(valid.document, valid.loaded.lines, reveals=question.reveals)
    return msgspec.Raw(msgspec.json.encode(shown))


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


def _merged(question: Inspect) -> bytes:
    # Loaded where it is needed: it reads YAML with another library.
    from vsr.config.migrate.merge import merge_text  # noqa: PLC0415

    base, patch = _base(question), _decoded(question.text, "patch")
    return merge_text(base, patch, file="document").encode()


def _with_recipe(question: Inspect) -> bytes:
    from vsr.config.migrate.recipe_edit import (  # noqa: PLC0415  # as above
        remove_recipe,
        write_recipe,
    )

    base, recipe = _base(question), _decoded(question.text, "recipe")
    name = question.recipe or ""
    if not recipe:
        return remove_recipe(base, name, file="document").encode()
    return write_recipe(base, name, recipe, file="document").encode()


def _base(question: Inspect) -> str:
    return _decoded(question.base or b"{}\n", "document")


def _decoded(data: bytes, name: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        problem = Problem("", "is not UTF-8 text", file=name, line=1, code=Code.INVALID_DOCUMENT)
        raise ConfigRejected([problem]) from None


def _without_quotes(error: ConfigRejected) -> tuple[Reason, ...]:
    """Return the reasons against editing, which quote no values."""
    return reasons_of(error, Stage.PARSE)
