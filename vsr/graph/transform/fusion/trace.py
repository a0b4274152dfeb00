"""Transformer `fusion_trace`: the member `fusion` of the answer."""

from collections.abc import Mapping

import attrs
import msgspec

from vsr.codec.chat_reply import Reply
from vsr.graph.aggregate.fusion_panel import Panel
from vsr.graph.transform.fusion.analysis import Findings
from vsr.graph.transform.fusion.grounding import Grounded
from vsr.graph.transform.fusion.settings import FusionSettings
from vsr.graph.transform.transformer import Transformer
from vsr.graph.value import Inputs
from vsr.registry import Extension


@attrs.frozen
class TraceFusion:
    """Tells the client how its answer came about, as far as the settings allow.

    Source: looper-algorithms 9.3 and 10, step 8.
    """

    settings: FusionSettings
    panel: Panel
    grounded: Grounded
    findings: Findings | None = None

    def __call__(self, inputs: Inputs, /) -> Mapping[str, object] | None:
        """Return JSON-able members; None where nothing may be shown and nothing went wrong."""
        del inputs
        settings, grounded = self.settings, self.grounded
        is_wanted = settings.include_analysis or settings.include_responses
        if not (is_wanted or self.panel.failed or grounded.mode):
            return None
        members: dict[str, object] = {}
        if settings.include_analysis and self.findings is not None:
            members["analysis"] = msgspec.to_builtins(self.findings)
        if settings.include_responses:
            members["responses"] = [_show(reply) for reply in grounded.panel]
        if self.panel.failed:
            members["failed_models"] = msgspec.to_builtins(self.panel.failed)
        members["judge_model"] = settings.judge
        members["analysis_models"] = list(settings.models)
        members["prompt_version"] = settings.prompt_version
        if grounded.mode is not None:
            members["grounding"] = {
                "reference_mode": grounded.mode,
                "policy": grounded.policy,
                "scores": msgspec.to_builtins(grounded.scores),
            }
        return members


def _show(reply: Reply) -> Mapping[str, str]:
    shown = {"model": reply.model, "content": reply.content}
    return {**shown, "reasoning": reply.reasoning} if reply.reasoning else shown


FUSION_TRACE = Extension[Transformer](name="fusion_trace", config=TraceFusion)
