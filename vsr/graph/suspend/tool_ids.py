"""Tool call ids that carry the state of a suspended run to the client and back.

Source of the form: looper-algorithms 12.1.
"""

import re
from collections.abc import Callable, Mapping, Sequence

import msgspec

from vsr.codec.chat_reply import Reply, ToolCall
from vsr.codec.strict_json import NULL
from vsr.errors import GraphFailed

DrawBytes = Callable[[int], bytes]
"""Returns so many bytes that nobody can guess."""

_STATE_BYTES = 12
_FORM = re.compile(r"flowtool_([0-9a-f]{24})__([0-9]{1,9})__(.+)", re.DOTALL)
_ODD_IN_NAME = re.compile(r"[^A-Za-z0-9_-]")

_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ENTRIES = msgspec.json.Decoder(list[msgspec.Raw])


class ToolCallId(msgspec.Struct, frozen=True):
    """What stands in one id: the state, a number within it, and the id that the backend gave."""

    state_id: str
    seq: int
    original: str

    def __str__(self) -> str:
        return f"flowtool_{self.state_id}__{self.seq}__{self.original}"


class PendingToolCalls(msgspec.Struct, frozen=True):
    """A reply whose tool calls wait for the client, with ids that lead back to the run."""

    state_id: str
    tool_call_ids: tuple[str, ...]
    reply: Reply
    """Its ids and its body's are the new ones."""
    assistant: msgspec.Raw
    """The body's message, for the conversation that goes on."""
    next_seq: int
    """Number of the next id of this state."""


def new_state_id(draw: DrawBytes) -> str:
    """Return the id of a new state: 24 hex digits."""
    return draw(_STATE_BYTES).hex()


def parse_tool_call_id(text: str) -> ToolCallId | None:
    """Return what the id carries, None if it is not of the form."""
    match = _FORM.fullmatch(text)
    return ToolCallId(match[1], int(match[2]), match[3]) if match else None


def suspend_reply(reply: Reply, state_id: str, seq: int, draw: DrawBytes) -> PendingToolCalls:
    """Return the reply with ids of the state in it; every other byte of its values stays.

    An id of this state, which a model repeats from its history, stays as it is. A legacy
    `function_call` becomes a tool call. The first choice's finish reason becomes `tool_calls`.

    Args:
        reply: has tool calls, and its body is a chat completion.
        state_id: of the state that will be stored.
        seq: number of the first new id.
        draw: for ids that the backend left out.

    Raises:
        GraphFailed: the body has no tool call that can be named.
    """
    try:
        members = _MEMBERS.decode(reply.body)
        choices = _ENTRIES.decode(members.get("choices", b"[]"))
        choice = _MEMBERS.decode(choices[0] if choices else b"{}")
        message = _MEMBERS.decode(choice.get("message", b"{}"))
        calls = _read_calls(message, draw)
        named, seq = _with_new_ids(calls, state_id, seq, draw)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise GraphFailed(_UNREADABLE) from error
    if not named:
        raise GraphFailed(_UNREADABLE)
    message = {name: raw for name, raw in message.items() if name != "function_call"}
    message["tool_calls"] = _encode([call.members for call in named])
    assistant = _encode(message)
    finish = _encode("tool_calls")
    choices[0] = _encode({**choice, "message": assistant, "finish_reason": finish})
    patched = msgspec.structs.replace(
        reply,
        tool_calls=tuple(call.tool_call for call in named),
        has_tool_calls=True,
        finish_reason="tool_calls",
        body=bytes(_encode({**members, "choices": _encode(choices)})),
    )
    ids = tuple(call.tool_call.id for call in named)
    return PendingToolCalls(state_id, ids, patched, assistant, seq)


def with_original_ids(assistant: msgspec.Raw) -> tuple[msgspec.Raw, Mapping[str, str]]:
    """Return a message of `PendingToolCalls` with the backend's ids, and those by ours.

    As it is, and none, where the backend gave an id twice.
    """
    message = _MEMBERS.decode(assistant)
    calls = [_MEMBERS.decode(entry) for entry in _ENTRIES.decode(message.get("tool_calls", b"[]"))]
    names: dict[str, str] = {}
    for call in calls:
        call_id = _TEXT.decode(call["id"]) or ""
        parsed = parse_tool_call_id(call_id)
        names[call_id] = parsed.original if parsed else call_id
    if len(set(names.values())) < len(calls):
        return assistant, {}
    given = [{**call, "id": _encode(names[_TEXT.decode(call["id"]) or ""])} for call in calls]
    return _encode({**message, "tool_calls": _encode(given)}), names


_UNREADABLE = "workflow tool state could not be made: the reply has no readable tool call"


class _Function(msgspec.Struct):
    name: str = ""
    arguments: str = ""


_FUNCTION = msgspec.json.Decoder(_Function)
_TEXT = msgspec.json.Decoder(str | None)


class _NamedCall(msgspec.Struct):
    members: Mapping[str, msgspec.Raw]
    tool_call: ToolCall


def _read_calls(
    message: Mapping[str, msgspec.Raw], draw: DrawBytes
) -> Sequence[Mapping[str, msgspec.Raw]]:
    """Return the members of each tool call; those of one made of a `function_call` if there is."""
    raw = message.get("tool_calls", NULL)
    if raw != NULL and (entries := _ENTRIES.decode(raw)):
        return [_MEMBERS.decode(entry) for entry in entries]
    function = message.get("function_call", NULL)
    if function == NULL:
        return []
    name = _ODD_IN_NAME.sub("_", _FUNCTION.decode(function).name)
    call_id = _encode(f"call_{name}_{draw(_STATE_BYTES).hex()}")
    return [{"id": call_id, "type": _encode("function"), "function": function}]


def _with_new_ids(
    calls: Sequence[Mapping[str, msgspec.Raw]], state_id: str, seq: int, draw: DrawBytes
) -> tuple[list[_NamedCall], int]:
    named = []
    for members in calls:
        given = _TEXT.decode(members["id"]) if "id" in members else None
        parsed = parse_tool_call_id(given or "")
        if parsed is None or parsed.state_id != state_id:
            parsed = ToolCallId(state_id, seq, given or draw(_STATE_BYTES).hex())
            seq += 1
        function = _FUNCTION.decode(members.get("function", b"{}"))
        call = ToolCall(str(parsed), function.name, function.arguments)
        named.append(_NamedCall({**members, "id": _encode(call.id)}, call))
    return named, seq


def _encode(value: object) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))
