"""The effective document as YAML, without its secrets."""

from itertools import zip_longest

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


def render(document: Document, lines: LineIndex) -> str:
    """Return `document` with its defaults filled in.

    Secrets are replaced, those in files by the reference to the file, and what came from the
    environment stands as the reference that was written; `lines` knows what was written.
    """
    if document.listeners is None:
        document = msgspec.structs.replace(document, listeners=DEFAULT_LISTENERS)
    return yaml.dump(
        _plain(document, (), lines), Dumper=CoreDumper, sort_keys=False, allow_unicode=True
    )


def _plain(value: object, path: Path, lines: LineIndex) -> Value:
    """Return what YAML can write; an omitted key without a default is left out."""
    if isinstance(value, dict):
        return {key: _plain(item, (*path, key), lines) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, (*path, at), lines) for at, item in enumerate(value)]
    if isinstance(value, DocumentObject):
        return _plain_object(value, path, lines)
    written = lines.value(path)
    if isinstance(written, Expanded) and isinstance(value, str):
        return written.authored
    return value if isinstance(value, bool | int | float | str) else None


def _plain_object(value: DocumentObject, path: Path, lines: LineIndex) -> dict[str, Value]:
    result: dict[str, Value] = {}
    for key, field in fields_of(type(value)).items():
        plain = _plain(field.of(value), (*path, key), lines)
        # An empty collection or object of defaults tells nothing, unless its author wrote it.
        if plain is None or (plain in ({}, []) and not lines.has((*path, key))):
            continue
        if field.is_secret:
            plain = _redact(plain, lines.value((*path, key)))
        result[key] = plain
    return result


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
