"""A chat request as an Anthropic Messages request.

Source: the reference's rules "Anthropic request and chat request", and its parity record
`auto-essay-anthropic-backend` where they differ.
"""

from collections.abc import Mapping, Sequence

import msgspec

from vsr.codec.anthropic.chat_turns import AnthropicTurns
from vsr.codec.anthropic.json_value import TRUE, JsonValue, encode, is_text
from vsr.codec.anthropic.protocol_warning import ProtocolWarning, Reason, WarningLog
from vsr.codec.anthropic.request_to_chat import DEFAULT_MAX_TOKENS
from vsr.codec.anthropic.request_tools import (
    CHOICE_MEMBERS,
    tool_choice_to_anthropic,
    tool_to_anthropic,
)
from vsr.codec.anthropic.side_record import NO_RECORD, Origin, SideRecord, align
from vsr.codec.chat_messages import read_entries
from vsr.codec.envelope import open_envelope
from vsr.codec.strict_json import NULL
from vsr.errors import InvalidRequest

Members = Mapping[str, msgspec.Raw]

_TRANSLATED = frozenset(
    {"model", "messages", "max_completion_tokens", "max_tokens", "stop", "stream", "user"}
    | {"tools", "tool_choice", "parallel_tool_calls"}
)
_SAME = frozenset({"temperature", "top_p", "top_k", "thinking"})
"""Members of both: the last two are Anthropic's, but chat clients send them, too."""
_NOT_LOST = frozenset({"stream_options", "metadata", "store"})
"""Members that ask for nothing which an Anthropic backend would have to do."""
_ASKS_NOTHING = frozenset({b"null", b"false", b"0", b"0.0"})
_ONE = msgspec.Raw(b"1")


class AnthropicTranslation(msgspec.Struct, frozen=True):
    """A chat request as an Anthropic one."""

    body: bytes
    warnings: tuple[ProtocolWarning, ...]


def chat_to_anthropic(body: bytes, record: SideRecord = NO_RECORD) -> AnthropicTranslation:
    """Translate a request; values that have a counterpart keep their bytes.

    Args:
        body: a chat request.
        record: of the translation that made `body`, if the client speaks Anthropic: what has not
            been changed since goes back to what the client sent.

    Raises:
        InvalidRequest: `messages` is no array, or a tool, its call or its result is incomplete.
    """
    members = open_envelope(body).members
    entries = read_entries(members.get("messages", NULL))
    if entries is None:
        raise InvalidRequest("messages field must be an array", param="messages")
    log = WarningLog()
    turns = _turns(entries, record, log)
    anthropic: dict[str, JsonValue] = {
        "model": members.get("model", NULL),
        "messages": turns.turns,
        "max_tokens": _max_tokens(members),
    }
    if turns.system:
        anthropic["system"] = _system(turns.system, record)
    anthropic |= _parameters(members)
    anthropic |= _tools(members, record, log)
    anthropic |= record.members
    anthropic |= _carried(members, record, log)
    return AnthropicTranslation(msgspec.json.encode(anthropic), tuple(log.warnings))


def _turns(entries: Sequence[msgspec.Raw], record: SideRecord, log: WarningLog) -> AnthropicTurns:
    turns = AnthropicTurns(log)
    for step in align(entries, record.messages):
        if isinstance(step, Origin):
            turns.add_original(step.anthropic)
        elif record.system is not None and entries[step] == record.system.chat[0]:
            turns.system += _system_blocks(record.system.anthropic)
        else:
            turns.add(entries[step], f"messages[{step}]")
    turns.end_results()
    return turns


def _system(blocks: list[JsonValue], record: SideRecord) -> JsonValue:
    """Return the system prompt, as the client wrote it if nothing was added to it."""
    if record.system is not None and blocks == _system_blocks(record.system.anthropic):
        return record.system.anthropic
    return blocks


def _system_blocks(system: msgspec.Raw) -> list[JsonValue]:
    blocks = read_entries(system)
    return [{"text": system, "type": "text"}] if blocks is None else [*blocks]


def _max_tokens(members: Members) -> JsonValue:
    for name in ("max_completion_tokens", "max_tokens"):
        literal = bytes(members.get(name, NULL))
        if literal[:1].isdigit() and float(literal) > 0:
            return members[name]
    return DEFAULT_MAX_TOKENS


def _parameters(members: Members) -> dict[str, JsonValue]:
    """Return what has a counterpart besides messages and tools, in the client's order."""
    anthropic: dict[str, JsonValue] = {}
    for name, value in members.items():
        if name in _SAME and value != NULL:
            anthropic[name] = value
        elif name == "stop":
            stops = [stop for stop in read_entries(value) or [value] if is_text(stop)]
            anthropic.update({"stop_sequences": stops} if stops else {})
        elif name == "stream" and value == TRUE:
            anthropic["stream"] = TRUE
        elif name == "user" and is_text(value):
            anthropic["metadata"] = {"user_id": value}
    return anthropic


def _tools(members: Members, record: SideRecord, log: WarningLog) -> dict[str, JsonValue]:
    entries = read_entries(members.get("tools", NULL)) or []
    tools: list[JsonValue] = []
    for step in align(entries, record.tools):
        if isinstance(step, Origin):
            tools.append(step.anthropic)
            continue
        tool = tool_to_anthropic(entries[step], f"tools[{step}]", log)
        tools += [tool] if tool is not None else []
    anthropic: dict[str, JsonValue] = {"tools": tools} if tools else {}
    choice = _tool_choice(members, record)
    if choice is not None:
        anthropic["tool_choice"] = choice
    return anthropic


def _tool_choice(members: Members, record: SideRecord) -> JsonValue:
    if record.tool_choice is not None:
        chosen = {name: members[name] for name in CHOICE_MEMBERS if name in members}
        if encode(chosen) == record.tool_choice.chat[0]:
            return record.tool_choice.anthropic
    return tool_choice_to_anthropic(members)


def _carried(members: Members, record: SideRecord, log: WarningLog) -> dict[str, JsonValue]:
    """Return the members that an Anthropic client sent and nobody knows; note all others.

    An Anthropic backend refuses a name that it does not know, so those are lost.
    """
    carried: dict[str, JsonValue] = {}
    for name, value in members.items():
        if name in record.carried:
            carried[name] = value
        elif name in _TRANSLATED or name in _SAME or name in _NOT_LOST:
            continue
        elif bytes(value) not in _ASKS_NOTHING and not (name == "n" and value == _ONE):
            log.lossy(Reason.DROPPED, name)
    return carried
