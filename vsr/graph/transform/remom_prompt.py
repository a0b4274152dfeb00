"""Transformer `remom_prompt`: asks for one answer, given those of the round before."""

from collections.abc import Iterator, Mapping, Sequence

import attrs

from vsr.codec.chat_reply import Reply
from vsr.codec.output_contract import MARKER, contract_paragraph
from vsr.errors import GraphFailed
from vsr.graph.env import Bound, Constant, Env
from vsr.graph.remom_round import RoundRecord, text_of
from vsr.graph.transform.compaction import Compaction, compacted
from vsr.graph.transform.go_template import Data, compile_template
from vsr.graph.transform.go_template_tree import ListOf, RecordOf
from vsr.graph.transform.template_refused import TemplateRefused
from vsr.graph.transform.transformer import Transformer
from vsr.graph.value import Inputs, Prompt
from vsr.registry import Extension

_REFERENCE = RecordOf({"Content": "text", "Reasoning": "text", "Model": "text"})
_DATA = RecordOf({"OriginalContent": "text", "ReferenceResponses": ListOf(_REFERENCE)})

_TASK = """Several attempts at one problem are collected below. They were made independently of each
other; any of them may be wrong, incomplete, or right only in part.

Work on the problem yourself. Compare the attempts, keep what holds up, and correct or drop what
does not. That most of them say the same is a hint, not a proof.
"""
_REQUEST = """
Now give your own complete solution of the problem. It is read without the attempts, so do not
refer to them, and leave nothing out that the solution needs.
"""


@attrs.frozen
class RemomPrompt:
    """Writes the synthesis prompt; it takes the place of the client's last message.

    Source: looper-algorithms 8.4 (data and order; the wording is ours), 13.1.
    """

    question: str
    previous: RoundRecord | None = None
    """None in the first round."""
    contract: str = ""
    """See `contract_text`."""
    is_action: bool = False
    """Whether the contract is a JSON action, which the first round is told of, too."""
    include_reasoning: bool = False
    compaction: Compaction = "full"
    compaction_tokens: int | None = None
    synthesis_template: str | None = None
    """A Go template of the deployer's in the place of our wording; empty counts as None."""

    @staticmethod
    def faults(env: Env, bound: Mapping[str, Bound]) -> Iterator[str]:
        """Yield what is wrong with the deployer's template."""
        del env
        template = bound.get("synthesis_template")
        if isinstance(template, Constant) and isinstance(template.value, str):
            try:
                check_synthesis_template(template.value)
            except TemplateRefused as error:
                yield f"synthesis_template: {error}"

    def __call__(self, _inputs: Inputs, /) -> Prompt | None:
        """Return the prompt; None where the client's own last message stands.

        Raises:
            GraphFailed: the deployer's template cannot be used on these replies.
        """
        problem = self.question
        if self.contract:
            problem += f"\n\n{MARKER}\n{self.contract}"
        if self.previous is None:
            return Prompt(problem, "replace_last") if self.is_action else None
        references = [
            self._reference(reply) for reply in self.previous.kept if text_of(reply).strip()
        ]
        text = (
            self._rendered(problem, references, self.previous.number + 1)
            if self.synthesis_template
            else _worded(problem, references)
        )
        return Prompt(text + contract_paragraph(self.contract), "replace_last")

    def _reference(self, reply: Reply) -> Mapping[str, str]:
        """Return what is shown of a reply: reasoning stands either as such or for the answer."""
        text = compacted(text_of(reply), self.compaction, self.compaction_tokens)
        has_content = bool(reply.content.strip())
        if not self.include_reasoning:
            return {"Content": text, "Reasoning": "", "Model": reply.model}
        return {
            "Content": text if has_content else "",
            "Reasoning": reply.reasoning if has_content else text,
            "Model": reply.model,
        }

    def _rendered(self, problem: str, references: Sequence[Mapping[str, str]], round_: int) -> str:
        data: Data = {"OriginalContent": problem, "ReferenceResponses": references}
        try:
            return compile_template(self.synthesis_template or "", _DATA).render(data)
        except TemplateRefused as error:
            what = f"failed to build synthesis prompt for round {round_}: {error}"
            raise GraphFailed(what) from None


def check_synthesis_template(source: str) -> None:
    """Check a deployer's template without running it.

    Raises:
        TemplateRefused: it cannot be used; the message says where and why.
    """
    compile_template(source, _DATA)


def _worded(problem: str, references: Sequence[Mapping[str, str]]) -> str:
    parts = [_TASK, f"\nThe problem:\n\n{problem}\n"]
    for number, reference in enumerate(references, start=1):
        parts.append(f"\nAttempt {number}, by {reference['Model']}:\n")
        if reference["Reasoning"].strip():
            parts.append(f"\nReasoning:\n{reference['Reasoning']}\n")
        if reference["Content"]:
            parts.append(f"\nAnswer:\n{reference['Content']}\n")
    return "".join((*parts, _REQUEST))


REMOM_PROMPT = Extension[Transformer](name="remom_prompt", config=RemomPrompt)
