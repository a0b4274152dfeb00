"""What steps of a graph read in a conversation: the question, the context, what it demands."""

from collections.abc import Iterator, Sequence

import msgspec

from vsr.codec.chat_messages import read_entries, read_string
from vsr.codec.output_contract import find_contract
from vsr.codec.strict_json import decode

_ABSENT = msgspec.Raw()


class _Turn(msgspec.Struct, gc=False):
    """Of any type, so that only what is no object cannot be read."""

    role: msgspec.Raw = _ABSENT
    content: msgspec.Raw = _ABSENT


class _Part(msgspec.Struct, gc=False):
    type: msgspec.Raw = _ABSENT
    text: msgspec.Raw = _ABSENT


_TURN = msgspec.json.Decoder(_Turn)
_PART = msgspec.json.Decoder(_Part)
_OBJECT = msgspec.json.Decoder(dict[str, object])


def read_question(messages: Sequence[msgspec.Raw]) -> str:
    """Return the last user message whose content is a string; empty if there is none.

    Source: looper-algorithms 3.1, variant Q2.
    """
    for role, content in _walk(reversed(messages)):
        text = _string(content) if role == "user" else None
        if text is not None:
            return text
    return ""


def read_any_question(messages: Sequence[msgspec.Raw]) -> str:
    """Return the last user message's text, of a list its first text part; empty if none has one.

    Source: looper-algorithms 3.1, variant Q1.
    """
    for role, content in _walk(reversed(messages)):
        if role != "user":
            continue
        text = _string(content)
        if text is not None:
            return text
        for text in _part_texts(content):
            return text
    return ""


def read_context(messages: Sequence[msgspec.Raw]) -> str:
    """Return the string contents of system and tool messages, joined by newlines."""
    texts = (
        _string(content) or "" for role, content in _walk(messages) if role in {"system", "tool"}
    )
    return "\n".join(text for text in texts if text.strip())


def read_contracts(messages: Sequence[msgspec.Raw]) -> tuple[str, ...]:
    """Return what follows the contract marker in each message that is not a model's or a tool's.

    Source: looper-algorithms 13.1.
    """
    found = []
    for role, content in _walk(messages):
        if role in {"assistant", "tool"}:
            continue
        text = _string(content)
        found.append(find_contract("\n".join(_part_texts(content)) if text is None else text))
    return tuple(contract for contract in found if contract)


def read_trailing_tools(messages: Sequence[msgspec.Raw]) -> tuple[dict[str, object], ...]:
    """Return the tool messages behind the last message of another role, in order."""
    run: list[dict[str, object]] = []
    for raw, (role, _) in zip(reversed(messages), _walk(reversed(messages)), strict=True):
        if role != "tool":
            break
        run.append(decode(_OBJECT, raw))
    return tuple(reversed(run))


def _walk(messages: Iterator[msgspec.Raw] | Sequence[msgspec.Raw]) -> Iterator[tuple[str, bytes]]:
    """Yield the role, empty if odd, and the content of each message."""
    for raw in messages:
        try:
            turn = decode(_TURN, raw)
        except msgspec.ValidationError:
            yield "", b""
        else:
            yield _string(turn.role) or "", turn.content


def _string(raw: bytes) -> str | None:
    return read_string(raw) if raw else None


def _part_texts(content: bytes) -> Iterator[str]:
    """Yield the texts of the text parts of a list; of other content nothing."""
    for raw in (read_entries(content) if content else None) or ():
        try:
            part = decode(_PART, raw)
        except msgspec.ValidationError:
            continue
        text = _string(part.text)
        if text is not None and _string(part.type) == "text":
            yield text
