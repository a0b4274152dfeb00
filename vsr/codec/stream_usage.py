"""Token usage of a streamed chat completion: asked for, read, and hidden from who did not ask.

Source: the reference's parity record `streaming-code-route`.
"""

import re
from collections.abc import Mapping

import msgspec

from vsr.codec.anthropic.stream_failure import TRUNCATED
from vsr.codec.chat_messages import read_entries, read_members
from vsr.codec.envelope import open_envelope
from vsr.codec.sse import (
    MAX_EVENT_BYTES,
    SseSplitter,
    leading_breaks,
    parse_event,
    replace_data,
)
from vsr.codec.strict_json import NULL
from vsr.errors import InvalidRequest

_TRUE = msgspec.Raw(b"true")
_USAGE = b'"usage"'
_COMPACT_NULL = b'"usage":null'
_NO_USAGE = re.compile(rb'"usage"[ \t]*:[ \t]*null')
_BLOCK_ENDS = (b"\n\n", b"\r\n\r\n")
_DONE = b"[DONE]"
_DONE_LINE = b"data: [DONE]"


class UsageDemand(msgspec.Struct, frozen=True):
    """How a streamed request gets its usage reported."""

    changes: Mapping[str, bytes]
    """Members of the request to set."""
    hides: bool
    """The client did not ask, so it must not see what is reported."""


def demand_usage(members: Mapping[str, msgspec.Raw]) -> UsageDemand:
    """Return what makes a backend report usage; of the client's own options nothing is lost.

    A request that is not streamed, that asks already, or whose options are no object (the backend
    will say so) stays as it is.
    """
    if members.get("stream") != _TRUE:
        return UsageDemand({}, hides=False)
    options = members.get("stream_options", NULL)
    if options == NULL:
        return UsageDemand({"stream_options": b'{"include_usage":true}'}, hides=True)
    if read_members(options) is None:
        return UsageDemand({}, hides=False)
    envelope = open_envelope(bytes(options))
    if envelope.members.get("include_usage") == _TRUE:
        return UsageDemand({}, hides=False)
    forced = envelope.spliced({"include_usage": b"true"})
    return UsageDemand({"stream_options": forced}, hides=True)


class ReportedUsage(msgspec.Struct, frozen=True):
    """Token counts as a backend reports them; None is unknown, and never 0."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    """Of the prompt: read from the provider's cache. At most `prompt_tokens`."""
    cache_write_tokens: int | None = None
    """Of the prompt: written to that cache. At most what the two others leave."""
    reasoning_tokens: int | None = None
    """Of the completion."""


class StreamUsage:
    """Reads a chat stream's usage as its bytes pass; any split gives the same bytes.

    Where usage is hidden, a chunk that has one is sent without it, and one that has no choices
    either is not sent; an event that is not complete waits for its end. All else passes byte for
    byte, and so does an event over the bound, whose usage stays unknown.
    """

    def __init__(self, *, hides: bool, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self.usage: ReportedUsage | None = None
        """What was reported last; None until then."""
        self.holds_done = False
        """Whether a `[DONE]` behind a chunk whose usage was taken out waits for the next bytes, as
        in the reference's records. Nobody is helped by that; adapters that show what each read
        came to set it."""
        self.is_complete = False
        """Whether the stream has come to its end, so that its usage is not one so far."""
        self.is_whole = True
        """A stream of the client's own protocol is as whole as the backend made it."""
        self._hides = hides
        self._splitter = SseSplitter(max_event_bytes)
        self._is_first = True
        self._held = b""
        self._is_clear = True
        """Whether nothing is held and no block is begun."""

    def feed(self, chunk: bytes) -> bytes:
        """Return the bytes that may go out now."""
        if (
            self._is_clear
            and chunk.endswith(_BLOCK_ENDS)
            and (_USAGE not in chunk or chunk.count(_USAGE) == chunk.count(_COMPACT_NULL))
        ):
            if _DONE_LINE in chunk:
                self.is_complete = True
            self._is_first = False
            return chunk
        out = self._feed_closely(chunk)
        self._is_clear = self._splitter.is_between_blocks and not self._held
        return out

    def _feed_closely(self, chunk: bytes) -> bytes:
        """Look at every block, since one may hold usage or may not be whole."""
        if _DONE_LINE in chunk:
            self.is_complete = True
        blocks = self._splitter.feed(chunk)
        if not self._hides:
            for block in blocks:
                self._pass(block.raw, is_whole=block.is_whole)
            return chunk
        pieces = [self._held]
        self._held = b""
        has_edited = False
        for at, block in enumerate(blocks):
            if (
                has_edited
                and self.holds_done
                and _DONE in block.raw
                and parse_event(block.raw).data == _DONE
            ):
                self._held = b"".join(rest.raw for rest in blocks[at:])
                break
            passed = self._pass(block.raw, is_whole=block.is_whole)
            has_edited = has_edited or passed is not block.raw
            pieces.append(passed)
        return b"".join(pieces)

    def close(self) -> bytes:
        """Return the bytes that were held back; the stream has ended."""
        self.is_complete = True
        rest = self._splitter.close()
        passed = self._pass(rest, is_whole=True)
        held, self._held = self._held, b""
        return held + passed if self._hides else b""

    def break_off(self) -> bytes:
        """Return an error event, if the client has no event begun."""
        return TRUNCATED.openai_event if self._splitter.is_between_blocks else b""

    def _pass(self, raw: bytes, *, is_whole: bool) -> bytes:
        """Note the usage in a block; return the block as the client gets it."""
        is_first, self._is_first = self._is_first, False
        if not is_whole or raw.count(_USAGE) == len(_NO_USAGE.findall(raw)):
            return raw
        data = parse_event(raw, is_first=is_first).data
        members = _read_object(data) if data is not None else None
        usage = NULL if members is None else members.pop("usage", NULL)
        if members is None or usage == NULL:
            return raw
        self.usage = read_reported(usage) or self.usage
        if not self._hides:
            return raw
        if "choices" in members and read_entries(members["choices"]) == []:
            return leading_breaks(raw)
        return replace_data(raw, _sorted_object(members), is_first=is_first)


def read_reported(usage: bytes) -> ReportedUsage | None:
    """Read a `usage` object of either API's names; None if it is another value.

    Source: the reference's rules "Usage", except that a count of a wrong type is unknown there
    together with all others.
    """
    members = _read_object(usage)
    if members is None:
        return None
    prompt_tokens = _count(members, "prompt_tokens", "input_tokens")
    prompt = _details(members, "prompt_tokens_details", "input_tokens_details")
    completion = _details(members, "completion_tokens_details", "output_tokens_details")
    cached_tokens = _at_most(_count(prompt, "cached_tokens"), prompt_tokens)
    left = None if prompt_tokens is None else prompt_tokens - (cached_tokens or 0)
    return ReportedUsage(
        prompt_tokens,
        _count(members, "completion_tokens", "output_tokens"),
        cached_tokens,
        _at_most(_count(prompt, "cache_write_tokens"), left),
        _count(completion, "reasoning_tokens"),
    )


def _read_object(raw: bytes) -> dict[str, msgspec.Raw] | None:
    try:
        return read_members(raw)
    except InvalidRequest:  # a backend's JSON, not the client's
        return None


def _details(members: Mapping[str, msgspec.Raw], *names: str) -> Mapping[str, msgspec.Raw]:
    for name in names:
        if name in members:
            return _read_object(members[name]) or {}
    return {}


def _count(members: Mapping[str, msgspec.Raw], *names: str) -> int | None:
    for name in names:
        literal = bytes(members.get(name, NULL))
        if literal.isdigit():
            return int(literal[:18])
    return None


def _at_most(count: int | None, limit: int | None) -> int | None:
    return count if count is None or limit is None else min(count, limit)


def _sorted_object(members: Mapping[str, msgspec.Raw]) -> bytes:
    pairs = (msgspec.json.encode(name) + b":" + members[name] for name in sorted(members))
    return b"{" + b",".join(pairs) + b"}"
