"""JSON that a backend wrote, read so that whatever is odd counts as absent."""

from collections.abc import Mapping
from typing import TypeAlias, TypeVar

import msgspec

T = TypeVar("T")

Members: TypeAlias = Mapping[str, msgspec.Raw]

_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ENTRIES = msgspec.json.Decoder(list[msgspec.Raw])
_STRING = msgspec.json.Decoder(str)


def read_odd(decoder: msgspec.json.Decoder[T], raw: bytes | None) -> T | None:
    """Return the value; None if it is absent, of another type, or no JSON."""
    if raw is None:
        return None
    try:
        return decoder.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return None


def object_in(raw: bytes | None) -> dict[str, msgspec.Raw]:
    """Return the members of an object; none if it is anything else."""
    return read_odd(_MEMBERS, raw) or {}


def object_at(members: Members, name: str) -> dict[str, msgspec.Raw]:
    """Return the members of the object that is a member; none if it is anything else."""
    return object_in(members.get(name))


def list_at(members: Members, name: str) -> list[msgspec.Raw]:
    """Return the entries of the list that is a member; none if it is anything else."""
    return read_odd(_ENTRIES, members.get(name)) or []


def string_at(members: Members, name: str) -> str | None:
    """Return the string that is a member; None if it is anything else."""
    return read_odd(_STRING, members.get(name))


def text_at(members: Members, name: str) -> str:
    """Return the string that is a member; empty if it is anything else."""
    return string_at(members, name) or ""


def first_choice(completion: Members) -> dict[str, msgspec.Raw]:
    """Return the members of a completion's or a chunk's first choice; none without choices."""
    choices = list_at(completion, "choices")
    return object_in(choices[0]) if choices else {}


def as_raw(value: object) -> msgspec.Raw:
    """Return the JSON of a value, to stand among members that came as JSON."""
    return msgspec.Raw(msgspec.json.encode(value))
