"""What the management API wants to know of a document; see `config.child` for who answers."""

from enum import StrEnum

import msgspec

from vsr.config.attempt import Reason
from vsr.config.diff import Change


class Mode(StrEnum):
    """What a text does to the document that there is."""

    REPLACE = "replace"
    MERGE = "merge"


class Inspect(msgspec.Struct, frozen=True):
    """A question about a text."""

    text: bytes
    mode: Mode = Mode.REPLACE
    base: bytes | None = None
    """The document that there is: merged into, and compared with."""
    file: str | None = None
    """That the document stands in."""
    may_read_files: bool = True
    """Whether it may name any file; else those that `known` names. Faults quote what files hold."""
    known: bytes = b""
    """A document that somebody who may has written."""
    recipe: str | None = None
    """Name of the recipe in `base` that `text` takes the place of, or an empty text takes away;
    empty: `text` has the name. None: it is about no recipe."""
    is_persisted: bool = False
    """Whether the file holds this text, and is named in faults; else they say `document`."""
    compares: bool = True
    """Whether it is compared, where there is a base."""
    wants_json: bool = False
    wants_yaml: bool = False
    reveals: bool = False
    """Whether secrets that stand in the document are shown in JSON."""


class Inspected(msgspec.Struct, frozen=True):
    """What becomes of it."""

    candidate: bytes
    """The document: the text, or what it is merged to."""
    reasons: tuple[Reason, ...] = ()
    """Why it is no valid document; that it is served is another question."""
    warnings: tuple[Reason, ...] = ()
    json: msgspec.Raw = msgspec.Raw(b"null")
    """The valid document with its defaults, as JSON; null where it is not wanted."""
    yaml: str = ""
    """The same as YAML, without secrets; empty where it is not wanted."""
    changes: tuple[Change, ...] | None = None
    """From `base` to it; None: one of them is not valid, or nothing is compared."""
