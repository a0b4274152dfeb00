"""Ends of branches and replies, for tests of what is made of them."""

from vsr.codec.chat_body import ChatBody
from vsr.codec.chat_reply import Reply, TokenLogprob
from vsr.graph.value import BranchOutcome, Failure, Inputs

INPUTS = Inputs(ChatBody({}))
"""For extensions that go by their fields alone."""


def reply(content: str = "", model: str = "alpha", *, reasoning: str = "") -> Reply:
    """Return a reply that says `content`."""
    return Reply(model, content, reasoning)


def scored(*tokens: tuple[str, float] | tuple[str, float, float]) -> Reply:
    """Return a reply of these tokens: text, logprob and, if it has alternatives, their margin."""
    return Reply("alpha", logprobs=tuple(_token(*token) for token in tokens))


def _token(text: str, logprob: float, margin: float | None = None) -> TokenLogprob:
    if margin is None:
        return TokenLogprob(text, logprob)
    return TokenLogprob(text, logprob, (("one", -1.0), ("other", -1.0 - margin)))


def ends(*values: object) -> list[BranchOutcome[object]]:
    """Return how branches ended that brought these values, in the order of their ends.

    A `Failure` is a branch that failed, None one that was cut off, a string a reply that says it.
    """
    return [_end(index, value) for index, value in enumerate(values)]


def _end(index: int, value: object) -> BranchOutcome[object]:
    if isinstance(value, Failure):
        return BranchOutcome(index, failure=value, rank=index)
    if value is None:
        return BranchOutcome(index)
    return BranchOutcome(index, reply(value) if isinstance(value, str) else value, rank=index)


def failure(message: str = "request failed with status 500") -> Failure:
    """Return a failure."""
    return Failure(message, "graph_failed")
