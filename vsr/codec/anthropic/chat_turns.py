"""Chat messages as the turns of an Anthropic conversation."""

from collections.abc import Sequence

import msgspec

from vsr.codec.anthropic.chat_parts import (
    Members,
    argument_object,
    text_block,
    text_literals,
    user_blocks,
)
from vsr.codec.anthropic.json_value import JsonValue, is_text, joined
from vsr.codec.anthropic.protocol_warning import Reason, WarningLog
from vsr.codec.chat_messages import read_entries, read_members, read_string
from vsr.codec.strict_json import NULL
from vsr.errors import InvalidRequest

_SPACE = b" "


class AnthropicTurns:
    """Builds system blocks and turns, one chat message at a time.

    Results of tools in a row share one user turn, which is how the Messages API wants them.
    """

    def __init__(self, log: WarningLog) -> None:
        self.system: list[JsonValue] = []
        self.turns: list[JsonValue] = []
        self._log = log
        self._results: list[JsonValue] = []

    def add(self, message: msgspec.Raw, field: str) -> None:
        """Add a chat message; `field` is its path.

        Raises:
            InvalidRequest: a tool's call or result has no id, no name or no JSON object.
        """
        members = read_members(message) or {}
        role = read_string(members.get("role", NULL))
        if role == "tool":
            self._add_result(members, field)
            return
        self.end_results()
        if role in {"system", "developer"}:
            texts = text_literals(members.get("content", NULL), f"{field}.content", self._log)
            self.system += [text_block(text) for text in texts]
        elif role == "user":
            self._add_turn(
                "user", user_blocks(members.get("content", NULL), f"{field}.content", self._log)
            )
        elif role == "assistant":
            self._add_turn("assistant", self._assistant_blocks(members, field))
        else:
            self._log.lossy(Reason.UNSUPPORTED_ROLE, f"{field}.role")

    def add_original(self, turn: msgspec.Raw) -> None:
        """Add a turn of the Messages API as it is."""
        self.end_results()
        self.turns.append(turn)

    def end_results(self) -> None:
        """Close the turn of tool results, if one is open."""
        if self._results:
            self.turns.append({"role": "user", "content": self._results})
            self._results = []

    def _add_turn(self, role: str, blocks: Sequence[JsonValue]) -> None:
        if blocks:
            self.turns.append({"role": role, "content": blocks})

    def _add_result(self, members: Members, field: str) -> None:
        call_id = members.get("tool_call_id")
        if not is_text(call_id):
            raise InvalidRequest(f"{field} has no tool_call_id", param=f"{field}.tool_call_id")
        result: dict[str, JsonValue] = {"type": "tool_result", "tool_use_id": call_id}
        texts = text_literals(members.get("content", NULL), f"{field}.content", self._log)
        if texts:
            result["content"] = [text_block(text) for text in texts]
        self._results.append(result)

    def _assistant_blocks(self, members: Members, field: str) -> list[JsonValue]:
        texts = text_literals(members.get("content", NULL), f"{field}.content", self._log)
        if not texts and is_text(members.get("refusal")):
            texts = [members["refusal"]]
        blocks: list[JsonValue] = [text_block(joined(texts, _SPACE))] if texts else []
        for at, call in enumerate(read_entries(members.get("tool_calls", NULL)) or ()):
            blocks.append(_tool_use(call, f"{field}.tool_calls[{at}]"))
        if members.get("function_call", NULL) != NULL:
            self._log.lossy(Reason.DROPPED, f"{field}.function_call")
        return blocks


def _tool_use(call: msgspec.Raw, field: str) -> JsonValue:
    members = read_members(call) or {}
    function = read_members(members.get("function", NULL)) or {}
    if not is_text(members.get("id")):
        raise InvalidRequest(f"{field} has no id", param=f"{field}.id")
    call_id = read_string(members["id"])
    if not is_text(function.get("name")):
        raise InvalidRequest(
            f"tool call {call_id} has no function name", param=f"{field}.function.name"
        )
    given = argument_object(function.get("arguments", NULL))
    if given is None:
        raise InvalidRequest(
            f"the arguments of tool call {call_id} are not a JSON object",
            param=f"{field}.function.arguments",
        )
    return {"type": "tool_use", "id": members["id"], "name": function["name"], "input": given}
