"""Token usage of an Anthropic stream: told at its start, then in running totals."""

import msgspec

from vsr.codec.anthropic.json_value import JsonValue
from vsr.codec.anthropic.response_to_chat import chat_usage, token_count
from vsr.codec.chat_messages import read_members
from vsr.codec.stream_usage import ReportedUsage
from vsr.codec.strict_json import NULL
from vsr.errors import InvalidRequest

_CACHED = "cache_read_input_tokens"
_CACHE_WRITTEN = "cache_creation_input_tokens"
_INPUT = ("input_tokens", _CACHED, _CACHE_WRITTEN)
_OUTPUT = ("output_tokens", "output_tokens_details")
_ZERO = msgspec.Raw(b"0")


class UsageTally:
    """Keeps the last count of each kind.

    A 0 does not replace a count: it is how some backends fill in what they tell only once.
    """

    def __init__(self) -> None:
        self._members: dict[str, msgspec.Raw] = {}

    def start(self, usage: msgspec.Raw) -> None:
        """Add the usage of `message_start`; its count of the output is none yet."""
        self._add(usage, _INPUT)

    def update(self, usage: msgspec.Raw) -> None:
        """Add the usage of a `message_delta`."""
        self._add(usage, _INPUT + _OUTPUT)

    @property
    def reported(self) -> ReportedUsage | None:
        """Return the usage so far; None if nothing was told."""
        members = self._members
        if not members:
            return None
        given = token_count(members, "input_tokens")
        cached, cache_written = token_count(members, _CACHED), token_count(members, _CACHE_WRITTEN)
        details = _read_object(members.get("output_tokens_details", NULL))
        return ReportedUsage(
            None if given is None else given + (cached or 0) + (cache_written or 0),
            token_count(members, "output_tokens"),
            cached,
            cache_written,
            token_count(details, "thinking_tokens"),
        )

    @property
    def chat_usage(self) -> JsonValue:
        """Return the usage as chat clients read it; None while a total is unknown."""
        return chat_usage(self._members)

    def _add(self, usage: msgspec.Raw, names: tuple[str, ...]) -> None:
        given = _read_object(usage)
        for name in names:
            value = given.get(name, NULL)
            if value != NULL and (value != _ZERO or name not in self._members):
                self._members[name] = msgspec.Raw(bytes(value))


def _read_object(raw: msgspec.Raw) -> dict[str, msgspec.Raw]:
    try:
        return read_members(raw) or {}
    except InvalidRequest:  # a backend's JSON, not the client's
        return {}
