"""What a chat request made from an Anthropic one leaves behind, for an Anthropic backend."""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from vsr.codec.anthropic.protocol_warning import ProtocolWarning


class Origin(msgspec.Struct, frozen=True):
    """One part of the Anthropic request and what became of it."""

    chat: Sequence[msgspec.Raw]
    """The chat messages, or the one tool, made of it; empty if it has no counterpart."""
    anthropic: msgspec.Raw


class SideRecord(msgspec.Struct, frozen=True):
    """The parts of an Anthropic request, each beside its translation.

    Chat parts that nobody changed go back to the originals they were made of, byte for byte, so
    that cache markers, signatures, documents and server tools reach an Anthropic backend.
    """

    system: Origin | None
    messages: Sequence[Origin]
    tools: Sequence[Origin]
    tool_choice: Origin | None
    """Made of it: an object of the chat members that it became."""
    members: Mapping[str, msgspec.Raw]
    """Members that a chat request has no place for."""
    carried: frozenset[str]
    """Names of members that are in the chat request as they came."""


NO_RECORD = SideRecord(None, (), (), None, {}, frozenset())
"""Of a chat request that a client wrote."""


class ChatTranslation(msgspec.Struct, frozen=True):
    """An Anthropic request as a chat request."""

    body: bytes
    warnings: tuple[ProtocolWarning, ...]
    """What any translated request loses."""
    openai_warnings: tuple[ProtocolWarning, ...]
    """What it loses besides if the backend speaks chat; an Anthropic one gets it from `record`."""
    record: SideRecord


def align(entries: Sequence[msgspec.Raw], origins: Sequence[Origin]) -> Iterator[int | Origin]:
    """Yield the origin of what is unchanged, and the index of each entry that has none.

    An origin without a counterpart comes in front of the next one that is found, or at the end.
    """
    places: dict[bytes, list[int]] = {}
    for place, origin in enumerate(origins):
        if origin.chat:
            places.setdefault(bytes(origin.chat[0]), []).append(place)
    done = at = 0
    while at < len(entries):
        candidates = places.get(bytes(entries[at]), [])
        for place in candidates[bisect_left(candidates, done) :]:
            count = len(origins[place].chat)
            if list(entries[at : at + count]) == list(origins[place].chat):
                yield from (origin for origin in origins[done:place] if not origin.chat)
                yield origins[place]
                done = place + 1
                at += count
                break
        else:
            yield at
            at += 1
    yield from (origin for origin in origins[done:] if not origin.chat)
