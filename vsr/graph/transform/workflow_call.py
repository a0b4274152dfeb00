"""Transformers `workflow_call` and `workflow_final_model`: whom a workflow calls, and how.

Source of the rules: looper-algorithms 11.1, 11.3 and 11.4.
"""

from collections.abc import Iterable, Mapping

import attrs
import msgspec

from vsr.graph.transform.transformer import Transformer
from vsr.graph.transform.workflow import Workflow
from vsr.graph.value import Inputs, ModelRef
from vsr.registry import Extension

_LAST_EFFORT = "medium"
_THINKING_NAMES = {"qwen": "enable_thinking", "qwq": "enable_thinking", "deepseek": "thinking"}
"""Which template argument switches the reasoning of a model whose name contains the word."""


class CallSettings(msgspec.Struct, frozen=True):
    """What is written into the request of one call."""

    chat_template_kwargs: Mapping[str, object] | None = None
    """None writes nothing."""
    max_completion_tokens: int | None = None
    """None leaves the client's."""
    timeout_s: float | None = None


@attrs.frozen
class WorkflowCall:
    """Says what the request to one model holds: its reasoning switches and its token limit."""

    model: str
    """The name that is called."""
    refs: tuple[ModelRef, ...]
    planner_model: str | None = None
    planner_max_completion_tokens: int | None = 2048
    """Of every call to the planner's model, whatever it does there."""
    max_completion_tokens: int | None = None
    """Of all other calls."""
    timeout_s: float | None = None
    """Of any call."""
    round_timeout_s: float | None = None
    """Of a step or of the final call, where that is shorter."""

    def __call__(self, _inputs: Inputs, /) -> CallSettings:
        """Return the settings of the call."""
        is_planner = self.model == self.planner_model
        switches = reasoning_switches(self.model, self.refs, is_planner=is_planner)
        limit = self.planner_max_completion_tokens if is_planner else self.max_completion_tokens
        timeouts = [each for each in (self.timeout_s, self.round_timeout_s) if each]
        return CallSettings(switches or None, limit, min(timeouts, default=None))


@attrs.frozen
class WorkflowFinalModel:
    """Says who writes the answer."""

    workflow: Workflow
    planner_model: str | None = None

    def __call__(self, _inputs: Inputs, /) -> str:
        """Return the plan's final model, else the planner, else who answered first."""
        named = self.workflow.plan.final.model or self.planner_model
        return named or self.workflow.replies[0].model


def reasoning_switches(
    model: str, refs: Iterable[ModelRef], *, is_planner: bool
) -> dict[str, object]:
    """Return the chat template arguments that switch a model's reasoning; empty for none.

    A planner does not reason, unless a reference to the same model says otherwise.
    """
    switches: dict[str, object] = {}
    argument = _thinking_argument(model)
    if is_planner and argument:
        switches[argument] = False
    ref = next((ref for ref in refs if ref.model == model), None)
    if ref is None or ref.use_reasoning is None:
        return switches
    family = ref.reasoning_family or model
    argument = _thinking_argument(family)
    if argument:
        switches[argument] = ref.use_reasoning
    elif "gpt-oss" in family.lower() and ref.use_reasoning:
        switches["reasoning_effort"] = ref.reasoning_effort or _LAST_EFFORT
    return switches


def _thinking_argument(name: str) -> str:
    lowered = name.lower()
    return next((argument for word, argument in _THINKING_NAMES.items() if word in lowered), "")


WORKFLOW_CALL = Extension[Transformer](name="workflow_call", config=WorkflowCall)
WORKFLOW_FINAL_MODEL = Extension[Transformer](
    name="workflow_final_model", config=WorkflowFinalModel
)
