"""The effective document as YAML, without its secrets."""

from itertools import zip_longest

import attrs
import msgspec
import yaml

from vsr.config.compile.snapshot import DEFAULT_LISTENERS
from vsr.config.document.objects import DocumentObject, fields_of
from vsr.config.document.root import Document
from vsr.config.environment import Expanded
from vsr.config.position import LineIndex, Path, Value
from vsr.config.secret_files import file_reference
from vsr.config.yaml_schema import CoreDumper

REDACTED = "<redacted>"


_CREDENTIAL_NAMES = frozenset(
    {
        "api-key",
        "api_key",
        "authorization",
        "cookie",
        "password",
        "proxy-authorization",
        "token",
        "x-api-key",
        "x-goog-api-key",
    }
)
"""Names in mappings of free form, as those of headers: what they hold is no word of a document."""


def render(document: Document, lines: LineIndex) -> str:
    """Return `document` with its defaults filled in, as YAML; see `plain`."""
    return yaml.dump(plain(document, lines), Dumper=CoreDumper, sort_keys=False, allow_unicode=True)


def plain(document: Document, lines: LineIndex, *, reveals: bool = False) -> dict[str, Value]:
    """Return `document` with its defaults filled in, in plain values.

    What came from the environment or a file stands as the reference that was written; `lines`
    knows what was written.

    Args:
        document: found valid.
        lines: of it.
        reveals: whether secrets that stand in the document are shown; else they are replaced.
    """
    if document.listeners is None:
        document = msgspec.structs.replace(document, listeners=DEFAULT_LISTENERS)
    return _Showing(lines, reveals=reveals).of_object(document, ())


@attrs.frozen
class _Showing:
    lines: LineIndex
    reveals: bool

    def of(self, value: object, path: Path) -> Value:
        """Return what YAML can write; an omitted key without a default is left out."""
        if isinstance(value, dict):
            return {key: self._of_member(key, item, (*path, key)) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.of(item, (*path, at)) for at, item in enumerate(value)]
        if isinstance(value, DocumentObject):
            return self.of_object(value, path)
        written = self.lines.value(path)
        if isinstance(written, Expanded) and isinstance(value, str):
            return written.authored
        return value if isinstance(value, bool | int | float | str) else None

    def _of_member(self, key: object, item: object, path: Path) -> Value:
        value = self.of(item, path)
        is_credential = isinstance(key, str) and key.lower() in _CREDENTIAL_NAMES
        if not is_credential or self.reveals or not isinstance(value, str):
            return value
        return value if isinstance(self.lines.value(path), Expanded) else REDACTED

    def of_object(self, value: DocumentObject, path: Path) -> dict[str, Value]:
        """Return an object of the document."""
        result: dict[str, Value] = {}
        for key, field in fields_of(type(value)).items():
            place = (*path, key)
            plain = self.of(field.of(value), place)
            # An empty collection or object of defaults tells nothing, unless its author wrote it.
            if plain is None or (plain in ({}, []) and not self.lines.has(place)):
                continue
            if field.is_secret:
                written = self.lines.value(place)
                plain = _written(plain, written) if self.reveals else _redact(plain, written)
            result[key] = plain
        return result


def _written(value: Value, written: Value) -> Value:
    """Return a secret as it was written: what a file holds is not shown."""
    if isinstance(value, dict):
        known = written if isinstance(written, dict) else {}
        return {key: _written(item, known.get(key)) for key, item in value.items()}
    if isinstance(value, list):
        items = written if isinstance(written, list) else []
        return [_written(item, each) for item, each in zip_longest(value, items)]
    return file_reference(written) or value


def _redact(value: Value, written: Value) -> Value:
    """Return `value` without its secrets; a file that one comes from is still named."""
    if isinstance(value, dict):
        known = written if isinstance(written, dict) else {}
        return {key: _redacted(known.get(key)) for key in value}
    if isinstance(value, list):
        items = written if isinstance(written, list) else []
        return [_redacted(item) for item, _ in zip_longest(items, value)]
    return _redacted(written)


def _redacted(written: Value) -> str:
    return file_reference(written) or REDACTED
