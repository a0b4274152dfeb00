"""One request of the management API as its handlers see it."""

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar
from urllib.parse import parse_qsl

import msgspec

from vsr.admin.access import Caller
from vsr.admin.answer import Answer, Invalid

MAX_BODY_BYTES = 10 * 1024 * 1024
"""Source: the reference."""
_Body = TypeVar("_Body", bound=msgspec.Struct)


class Call(msgspec.Struct, frozen=True):
    """A request by somebody who may ask it."""

    caller: Caller
    request_id: str
    method: str
    path: str
    raw_query: str = ""
    if_match: str | None = None
    body: bytes = b""
    parameters: Mapping[str, str] = {}
    """What its path has in the place of names."""

    @property
    def query(self) -> dict[str, str]:
        """Return its query; of a name that is given twice the last value."""
        return dict(parse_qsl(self.raw_query, keep_blank_values=True, errors="replace"))

    def read(self, kind: type[_Body]) -> _Body:
        """Return its body, strict JSON.

        Raises:
            Invalid: it is none, or of another shape.
        """
        try:
            body = msgspec.json.decode(self.body, type=kind)
            # By now it has known members only, so that this takes no time.
            json.loads(self.body, object_pairs_hook=_without_doubles)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            raise Invalid(f"The body must be JSON: {_shape(kind)}.") from None
        except ValueError as error:
            raise Invalid(f"The body is not strict JSON: {error}.") from None
        return body


Handler = Callable[[Call], Awaitable[Answer]]


def _without_doubles(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"{json.dumps(key)} is given twice")
        found[key] = value
    return found


def _shape(kind: type[msgspec.Struct]) -> str:
    members = []
    for field in msgspec.structs.fields(kind):
        name = json.dumps(field.encode_name)
        members.append(name if field.required else f"{name} (optional)")
    return f"an object with {', '.join(members)}, and nothing else"
