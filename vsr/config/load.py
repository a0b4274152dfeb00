"""From a document's bytes to plain values that remember their lines."""

import hashlib
from collections.abc import Callable, Mapping

import attrs
import yaml

from vsr.config.environment import Expanded, expand, expand_braced
from vsr.config.graph_places import is_in_graph
from vsr.config.position import LineIndex, Path, Value
from vsr.config.report import Report
from vsr.config.yaml_schema import BOOL, FLOAT, INT, MAP, MERGE, NULL, SEQ, STR, CoreLoader

MAX_DOCUMENT_BYTES = 8 * 1024 * 1024
"""Ten times the document of the largest deployment we measure, 1,000 models and 10,000 keys."""
MAX_DEPTH = 64
"""Deepest nesting; the deepest place of the canonical document is 12, rule trees apart."""
MAX_VALUES = 500_000
"""Values after aliases are expanded: what a small document can blow up to."""
_MAX_DIGITS = 400


@attrs.frozen
class Loaded:
    """One YAML document as values, environment references expanded."""

    values: Value = attrs.field(repr=False)
    lines: LineIndex = attrs.field(repr=False)
    sha256: str
    """Of the bytes as they came, lower-case hex; those of graphs in files of their own count."""
    count: int = 0
    """Of values, after aliases are expanded."""


def load(
    data: bytes,
    environ: Mapping[str, str],
    report: Report,
    *,
    at: Path = (),
    max_values: int = MAX_VALUES,
) -> Loaded | None:
    """Return the document in `data`, or None if it can't be read; `report` gets every problem.

    Args:
        data: of one YAML document.
        environ: resolves references.
        report: gets the problems.
        at: where the document stands, if it is a part of another one.
        max_values: limit of its values.
    """
    if len(data) > MAX_DOCUMENT_BYTES:
        report.add(at, "is too large", f"the limit is {MAX_DOCUMENT_BYTES} bytes", line=1)
        return None
    root = _compose(data, at, report)
    if root is None:
        return None
    reader = _Reader(environ, report, at, max_values)
    try:
        values = reader.read(root, at)
    except _TooLarge:
        return None
    lines = LineIndex(values, reader.marks, _line(root))
    return Loaded(values, lines, hashlib.sha256(data).hexdigest(), reader.count)


def _compose(data: bytes, at: Path, report: Report) -> yaml.Node | None:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        report.add(at, "is not UTF-8 text", mend="save the file as UTF-8", line=line)
        return None
    try:
        root: yaml.Node | None = yaml.compose(text, Loader=CoreLoader)
    except yaml.reader.ReaderError as error:
        # libyaml counts bytes.
        line = text.encode().count(b"\n", 0, error.position) + 1
        report.add(at, "is not valid YAML", error.reason, line=line)
        return None
    except yaml.MarkedYAMLError as error:
        # Only the fixed words of the error: its snippet could show a credential.
        mark = error.problem_mark or error.context_mark
        why = " ".join(part for part in (error.context, error.problem) if part)
        report.add(at, "is not valid YAML", why, line=mark.line + 1 if mark else 1)
        return None
    if root is None:
        report.add(at, "is empty", mend="start from the example in the README", line=1)
    return root


class _TooLarge(Exception):
    """The document goes over a limit; the report says which."""


class _Reader:
    """Turns nodes into values, one fresh value per occurrence, and marks their lines."""

    def __init__(
        self, environ: Mapping[str, str], report: Report, at: Path, max_values: int
    ) -> None:
        self.marks: dict[int, dict[str | int, int]] = {}
        self.count = 0
        self._environ = environ
        self._report = report
        self._at = at
        self._max_values = max_values

    def read(self, node: yaml.Node, path: Path) -> Value:
        """Return the value of `node`.

        Raises:
            _TooLarge: nested too deep, or too many values.
        """
        self.count += 1
        if len(path) > MAX_DEPTH:
            why = f"the limit is {MAX_DEPTH} levels; an alias may contain itself"
            place = path[: len(self._at) + 4]
            raise self._too_large(place, "is nested too deep", why, _line(node))
        if self.count > self._max_values:
            why = f"the limit is {MAX_VALUES} values"
            raise self._too_large(self._at, "is too large", why, 1)
        if isinstance(node, yaml.MappingNode) and node.tag == MAP:
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode) and node.tag == SEQ:
            return self._sequence(node, path)
        if isinstance(node, yaml.ScalarNode) and node.tag in {STR, *_SCALARS}:
            return self._scalar(node, path)
        self._report.add_broken(
            path, "has a YAML tag that is not supported", mend="remove the tag", line=_line(node)
        )
        return None

    def _too_large(self, path: Path, what: str, why: str, line: int) -> _TooLarge:
        self._report.add(path, what, why, line=line)
        return _TooLarge()

    def _sequence(self, node: yaml.SequenceNode, path: Path) -> list[Value]:
        result: list[Value] = []
        self.marks[id(result)] = {index: _line(item) for index, item in enumerate(node.value)}
        result.extend(self.read(item, (*path, index)) for index, item in enumerate(node.value))
        return result

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, Value]:
        result: dict[str, Value] = {}
        marks = self.marks[id(result)] = {}
        merged: list[yaml.Node] = []
        for key, item in node.value:
            if key.tag == MERGE:
                merged.append(item)
            elif self._may_add(key, result, path):
                marks[key.value] = _line(key)
                result[key.value] = self.read(item, (*path, key.value))
        for item in merged:
            self._merge(item, result, path)
        return result

    def _may_add(self, key: yaml.Node, result: dict[str, Value], path: Path) -> bool:
        if not isinstance(key, yaml.ScalarNode) or key.tag != STR:
            self._report.add(
                path, "has a key that is not text", mend="put the key in quotes", line=_line(key)
            )
            return False
        if key.value in result:
            self._report.add(
                (*path, key.value),
                "is given twice",
                f"first on line {self.marks[id(result)][key.value]}",
                "keep one of the two",
                line=_line(key),
            )
            return False
        return True

    def _merge(self, node: yaml.Node, result: dict[str, Value], path: Path) -> None:
        sources = node.value if isinstance(node, yaml.SequenceNode) else [node]
        for source in sources:
            if not isinstance(source, yaml.MappingNode):
                self._report.add(
                    path, "merges what is not a mapping", "`<<` takes mappings", line=_line(node)
                )
                continue
            values = self.read(source, path)
            marks = self.marks[id(values)]
            for key, value in values.items() if isinstance(values, dict) else ():
                # A key of the mapping itself wins, then the mapping merged first.
                if key not in result:
                    result[key] = value
                    self.marks[id(result)][key] = marks[key]

    def _scalar(self, node: yaml.ScalarNode, path: Path) -> Value:
        if node.tag == STR:
            return self._expand(node, path)
        try:
            return _SCALARS[node.tag](node.value)
        except ValueError:
            # Only an explicit tag (`!!int x`) or an endless number gets here.
            self._report.add_broken(path, "is not a value of its YAML type", line=_line(node))
            return None

    def _expand(self, node: yaml.ScalarNode, path: Path) -> str:
        is_free = "$" in node.value and is_in_graph(path)
        text = (expand_braced if is_free else expand)(node.value, self._environ)
        if isinstance(text, Expanded) and not _is_unicode(text):
            what = f"{text!r} gives what is not UTF-8 text"
            self._report.add_broken(path, what, line=_line(node))
        return text


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def read_int(text: str) -> int:
    """Return the whole number that `text` writes in YAML 1.2.

    Raises:
        ValueError: it is none.
    """
    if len(text) > _MAX_DIGITS:
        raise ValueError("too many digits")
    return int(text, 0) if text[:2] in {"0x", "0o"} else int(text)


def read_bool(text: str) -> bool:
    """Return the truth value that `text` writes in YAML 1.2.

    Raises:
        ValueError: it is none.
    """
    if text not in {"true", "True", "TRUE", "false", "False", "FALSE"}:
        raise ValueError("neither true nor false")
    return text[0] in "tT"


def _read_float(text: str) -> float:
    return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))


def _read_null(_text: str) -> None:
    return None


_SCALARS: Mapping[str, Callable[[str], Value]] = {
    INT: read_int,
    FLOAT: _read_float,
    BOOL: read_bool,
    NULL: _read_null,
}
