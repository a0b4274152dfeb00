"""The client's answers to the tool calls of a suspended run.

Source of the rules and texts: looper-algorithms 12.2 and 19.
"""

from collections.abc import Mapping, Sequence

import msgspec

from vsr.errors import GraphFailed
from vsr.graph.suspend.tool_ids import parse_tool_call_id, with_original_ids

ToolMessage = Mapping[str, object]
"""A message of the role `tool`, decoded."""

_ENTRIES = msgspec.json.Decoder(list[msgspec.Raw])


def find_state_id(trailing: Sequence[ToolMessage]) -> str | None:
    """Return the state that the tool messages at a conversation's end belong to, if any does.

    Args:
        trailing: the tool messages behind the last message of another role, in order.
    """
    for message in trailing:
        parsed = parse_tool_call_id(_id_of(message))
        if parsed is not None:
            return parsed.state_id
    return None


def check_answers(
    trailing: Sequence[ToolMessage], state_id: str, pending: Sequence[str]
) -> tuple[ToolMessage, ...]:
    """Return the answers to the pending tool calls in the order in which they were sent.

    Of several answers to one call the first counts.

    Args:
        trailing: the tool messages behind the last message of another role, in order.
        state_id: of the suspended run.
        pending: ids of its unanswered tool calls.

    Raises:
        GraphFailed: a message answers something else, or a call has no answer.
    """
    answers: dict[str, ToolMessage] = {}
    for message in trailing:
        call_id = _id_of(message)
        parsed = parse_tool_call_id(call_id)
        if parsed is None:
            raise GraphFailed(f'tool result "{call_id}" does not belong to a workflow')
        if parsed.state_id != state_id:
            raise GraphFailed(f'tool result "{call_id}" belongs to another workflow tool state')
        if call_id not in pending:
            raise GraphFailed(f'tool result "{call_id}" is not pending in its workflow tool state')
        answers.setdefault(call_id, message)
    for call_id in pending:
        if call_id not in answers:
            raise GraphFailed(f'missing tool result for workflow tool_call_id "{call_id}"')
    return tuple(answers.values())


def continued_messages(
    messages: bytes, assistant: msgspec.Raw, answers: Sequence[ToolMessage]
) -> msgspec.Raw:
    """Return the conversation with which the suspended call is made again.

    Tool calls have the ids that the backend gave: it may refuse longer ones. Where it gave one
    twice they keep those of the client.

    Args:
        messages: the JSON array that the call was made with.
        assistant: the message that asked for the tools.
        answers: what `check_answers` returned.
    """
    assistant, names = with_original_ids(assistant)
    told = [
        {**answer, "tool_call_id": names.get(_id_of(answer), _id_of(answer))} for answer in answers
    ]
    entries: list[object] = [*_ENTRIES.decode(messages), assistant, *told]
    return msgspec.Raw(msgspec.json.encode(entries))


def _id_of(message: ToolMessage) -> str:
    call_id = message.get("tool_call_id")
    return call_id if isinstance(call_id, str) else ""
