"""What every class of the document is, and what its fields are."""

import functools
from collections.abc import Mapping
from enum import Enum
from typing import Annotated, get_args, get_origin, get_type_hints

import msgspec

from vsr.config.document.kinds import key_of


class DocumentObject(msgspec.Struct, frozen=True):
    """A mapping of the document.

    A struct, since the document has 300 classes that every start defines (ADR 22). It never shows
    its values, secrets being among them.
    """

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


class Mark(Enum):
    """What a field's annotation says of the field, beyond its kind."""

    SECRET = "secret"  # noqa: S105  # no secret, but the word for one
    """The value is a credential or may hold one, and is never shown."""
    REQUIRED = "required"
    """The key must be there."""


SECRET = Mark.SECRET
REQUIRED = Mark.REQUIRED


class SchemaDefault(msgspec.Struct, frozen=True):
    """The default that the JSON schema tells; it holds where the document says nothing at all."""

    value: object


class Field(msgspec.Struct, frozen=True):
    """A field of a class of the document."""

    name: str
    kind: object
    """Its type, kinds of `kinds` included."""
    default: object
    schema_default: SchemaDefault | None
    is_required: bool
    is_secret: bool

    def of(self, owner: DocumentObject) -> object:
        """Return its value in an object."""
        value: object = getattr(owner, self.name)
        return value


@functools.cache
def fields_of(cls: type[DocumentObject]) -> Mapping[str, Field]:
    """Return the fields of a class of the document by key, in declared order."""
    hints = get_type_hints(cls, include_extras=True)
    fields = [_field(each, hints[each.name]) for each in msgspec.structs.fields(cls)]
    return {key_of(field.name): field for field in fields}


def _field(field: msgspec.structs.FieldInfo, hint: object) -> Field:
    kind, marks = _told_apart(hint)
    has_factory = field.default_factory is not msgspec.NODEFAULT
    return Field(
        field.name,
        kind,
        field.default_factory() if has_factory else field.default,
        next((mark for mark in marks if isinstance(mark, SchemaDefault)), None),
        is_required=REQUIRED in marks,
        is_secret=SECRET in marks,
    )


def _told_apart(hint: object) -> tuple[object, tuple[object, ...]]:
    """Return the kind in an annotation, and what else it says of its field."""
    if get_origin(hint) is not Annotated:
        return hint, ()
    base, *notes = get_args(hint)
    marks = tuple(note for note in notes if isinstance(note, Mark | SchemaDefault))
    kinds = tuple(note for note in notes if note not in marks)
    return (Annotated[base, *kinds] if kinds else base), marks
