"""Transformer `workflow_final`: the answer of a workflow, also where its final call failed.

Source of the rules and texts: looper-algorithms 11.3, 13.2 and 19.
"""

import attrs

from vsr.codec.chat_reply import Reply
from vsr.graph.transform.choice_contract import ChoiceSpec, reply_of_majority
from vsr.graph.transform.transformer import Transformer
from vsr.graph.transform.workflow import OnError, Workflow, failed, text_of
from vsr.graph.value import Failure, Inputs
from vsr.registry import Extension


@attrs.frozen
class WorkflowFinalAnswer:
    """Takes the final reply, or a copy of an earlier one in its place."""

    workflow: Workflow
    model: str
    """Who was asked for the answer."""
    answer: Reply | Failure
    choice: ChoiceSpec | None = None
    on_failure: OnError = "fail"

    def __call__(self, inputs: Inputs, /) -> Reply:
        """Return the answer; a copy keeps its model and its usage.

        Raises:
            GraphFailed: the final call failed, and `on_failure` is `fail`, or nothing can stand in,
                or the run goes on with tools' answers, which the client can then send again.
        """
        if isinstance(self.answer, Reply):
            return self.answer
        may_stand_in = self.on_failure == "skip" and not inputs.is_resumed
        copy = self._stand_in() if may_stand_in else None
        if copy is None:
            cause = self.answer
            raise failed(
                f'workflow final synthesis failed for model "{self.model}": {cause.message}', cause
            )
        return copy

    def _stand_in(self) -> Reply | None:
        """Return the majority's reply, else the last reply of the last step that has text."""
        if self.choice is not None:
            winner = reply_of_majority(self.workflow.replies, self.choice)
            if winner is not None:
                return winner
        for result in reversed(self.workflow.results):
            for agent in reversed(result.replies):
                if text_of(agent.reply).strip():
                    return agent.reply
        return None


WORKFLOW_FINAL = Extension[Transformer](name="workflow_final", config=WorkflowFinalAnswer)
