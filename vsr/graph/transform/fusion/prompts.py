"""Transformers `fusion_analysis_prompt`, `fusion_final_prompt` and `fusion_fallback_prompt`."""

from typing import Literal

import attrs

from vsr.codec.chat_reply import Reply
from vsr.codec.output_contract import contract_paragraph
from vsr.graph.transform.fusion import wording
from vsr.graph.transform.fusion.analysis import Findings, show_findings
from vsr.graph.transform.fusion.grounding import Grounded
from vsr.graph.transform.transformer import Transformer
from vsr.graph.value import Inputs, Prompt
from vsr.registry import Extension

_TEMPLATES = {"separate": wording.SEPARATE, "one_call": wording.ONE_CALL, "none": wording.DIRECT}


@attrs.frozen
class PromptAnalysis:
    """Asks the judge to compare the panel's replies; it names no output contract.

    Source of what it must hold: looper-algorithms 9.2, step 5.
    """

    question: str
    grounded: Grounded
    template: str | None = None
    """The author's own, with `{{original}}` and `{{responses}}`."""

    def __call__(self, inputs: Inputs, /) -> Prompt:
        """Return the prompt; scores, if any, stand at its end, those of dropped replies too."""
        del inputs
        template = self.template or wording.ANALYSIS
        text = _fill(template, self.question, self.grounded.panel, "")
        notes = [wording.show_scores(self.grounded.scores)] if self.grounded.scores else []
        return Prompt("\n\n".join((text, *notes)))


@attrs.frozen
class PromptFinal:
    """Asks the judge for the answer.

    Source of what it must hold: looper-algorithms 9.2, step 6, 10, step 7, and 16.
    """

    question: str
    grounded: Grounded
    findings: Findings | None = None
    mode: Literal["separate", "one_call", "none"] = "separate"
    """Whether the judge has compared the replies already, is to do so now, or not at all."""
    template: str | None = None
    """The author's own, with `{{original}}`, `{{responses}}` and `{{analysis}}`."""
    contract: str = ""
    """Text of the output contract; empty if there is none."""

    def __call__(self, inputs: Inputs, /) -> Prompt:
        """Return the prompt; its contract is the last thing in it."""
        del inputs
        template = self.template or _TEMPLATES[self.mode]
        text = _fill(template, self.question, self.grounded.panel, self._comparison())
        # The contract is last: who reads it back takes everything behind its marker.
        return Prompt("\n\n".join((text, *self._notes())) + contract_paragraph(self.contract))

    def _comparison(self) -> str:
        is_readable = self.findings is not None and not self.findings.parse_failed
        if self.template is None and not is_readable:
            return wording.NO_COMPARISON
        return show_findings(self.findings)

    def _notes(self) -> tuple[str, ...]:
        match self.grounded.policy:
            case "weight":
                notes = (wording.PREFER_SUPPORTED, wording.show_scores(self.grounded.scores))
                return ("\n".join(notes),)
            case "annotate":
                return (wording.show_scores(self.grounded.scores),)
            case "filter" | None:
                return ()


@attrs.frozen
class PromptFallback:
    """Tells the model that stands in for a panel what form its answer must have.

    Source: looper-algorithms 16, `quorum_failure_policy`.
    """

    contract: str = ""
    """Text of the output contract; empty if there is none."""

    def __call__(self, inputs: Inputs, /) -> Prompt | None:
        """Return the prompt; None where nothing is demanded, and the client's words suffice."""
        del inputs
        text = contract_paragraph(self.contract).lstrip("\n")
        return Prompt(text) if text else None


def _fill(template: str, question: str, panel: tuple[Reply, ...], comparison: str) -> str:
    values = {
        "original": question,
        "responses": wording.show_replies(panel),
        "analysis": comparison,
    }
    return wording.fill_template(template, values)


FUSION_ANALYSIS_PROMPT = Extension[Transformer](
    name="fusion_analysis_prompt", config=PromptAnalysis
)
FUSION_FINAL_PROMPT = Extension[Transformer](name="fusion_final_prompt", config=PromptFinal)
FUSION_FALLBACK_PROMPT = Extension[Transformer](
    name="fusion_fallback_prompt", config=PromptFallback
)
