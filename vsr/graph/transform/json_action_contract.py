"""Transformer `json_action_contract`: the answer is a JSON object that tells a terminal what to do.

Source of the rules: looper-algorithms 13.3.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import attrs
import msgspec

from vsr.codec.chat_reply import Reply
from vsr.codec.tolerant_json import read_as
from vsr.graph.transform.choice_contract import Source
from vsr.graph.transform.transformer import Transformer
from vsr.graph.value import Inputs
from vsr.registry import Extension

_FIRST_MEMBERS = ("analysis", "plan", "commands", "task_complete")
_NO_ANALYSIS = "The answer gives no analysis."
_NO_PLAN = "The answer gives no plan."
_MIN_DURATION_S = 1
_OBJECT = msgspec.json.Decoder(dict[str, object])


@attrs.frozen
class JsonActionSpec:
    """Where to look for the action, and how closely."""

    mode: Literal["exact", "json_object"] = "exact"
    """`exact`: the whole trimmed text is the object; `json_object`: it is found in the text."""
    sources: tuple[Source, ...] = ("content",)


@attrs.frozen
class JsonActionContract:
    """Replaces the content by the action that the reply, or a candidate, states."""

    reply: Reply
    candidates: tuple[Reply, ...] = ()
    """For the source `candidate_responses`, in order."""
    action: JsonActionSpec | None = None
    """None: there is no such contract, and the reply stays."""

    def __call__(self, _inputs: Inputs, /) -> Reply:
        """Return the reply with the completed action as its content and without tool calls.

        Unchanged if no source has an action.
        """
        if self.action is None:
            return self.reply
        for text in self._texts(self.action.sources):
            action = _read_action(text, self.action)
            if action is not None:
                return msgspec.structs.replace(
                    self.reply, content=_encode(action), tool_calls=(), has_tool_calls=False
                )
        return self.reply

    def _texts(self, sources: Iterable[Source]) -> Sequence[str]:
        texts: list[str] = []
        for source in sources:
            if source == "content":
                texts.append(self.reply.content)
            elif source == "reasoning_content":
                texts.append(self.reply.reasoning)
            else:
                for candidate in self.candidates:
                    texts += [candidate.content, candidate.reasoning]
        return [text for text in texts if text.strip()]


def completed_action(written: Mapping[str, object]) -> dict[str, object] | None:
    """Return the action with what it leaves out filled in; None if the object is no action."""
    if not ("commands" in written or "task_complete" in written):
        return None
    commands = written.get("commands", [])
    if not isinstance(commands, list):
        return None
    completed = [_completed_command(command) for command in commands]
    if None in completed:
        return None
    analysis, plan = written.get("analysis"), written.get("plan")
    return {
        **written,
        "analysis": analysis if isinstance(analysis, str) else _NO_ANALYSIS,
        "plan": plan if isinstance(plan, str) else _NO_PLAN,
        "commands": completed,
        "task_complete": written.get("task_complete", False),
    }


def _completed_command(command: object) -> dict[str, object] | None:
    if not isinstance(command, dict) or not isinstance(command.get("keystrokes"), str):
        return None
    duration = command.get("duration")
    if isinstance(duration, bool) or not isinstance(duration, int | float):
        duration = _MIN_DURATION_S
    return {**command, "duration": max(duration, _MIN_DURATION_S)}


def _read_action(text: str, action: JsonActionSpec) -> dict[str, object] | None:
    try:
        if action.mode == "exact":
            written: Mapping[str, object] = _OBJECT.decode(text.strip())
        else:
            written = read_as(dict, text)
    except (ValueError, RecursionError):
        return None
    return completed_action(written)


def _encode(action: Mapping[str, object]) -> str:
    """Return compact JSON: the known members first, the others sorted, as inside of them."""
    others = sorted(action.keys() - set(_FIRST_MEMBERS))
    pairs = (
        msgspec.json.encode(name) + b":" + msgspec.json.encode(action[name], order="sorted")
        for name in (*_FIRST_MEMBERS, *others)
    )
    return (b"{" + b",".join(pairs) + b"}").decode()


JSON_ACTION_CONTRACT = Extension[Transformer](
    name="json_action_contract", config=JsonActionContract
)
