"""Aggregate strategies `quorum` and `majority`: the answer that most branches agree on."""

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from functools import partial

import attrs
import msgspec

from vsr.codec.chat_reply import Reply
from vsr.errors import GraphFailed
from vsr.graph.aggregate.answer import Extraction, Normalization, answer_key, extract_answer
from vsr.graph.aggregate.strategy import Aggregate
from vsr.graph.aggregate.successes import find_replies, no_success
from vsr.graph.expression import check_expression
from vsr.graph.value import BranchOutcome, Inputs
from vsr.registry import Extension


@attrs.frozen
class Quorum:
    """Picks the most frequent content if it has at least `min_votes` votes."""

    min_votes: int = attrs.field(default=2, validator=attrs.validators.ge(1))
    normalize: Normalization = "trimmed"

    def __call__(
        self, outcomes: Sequence[BranchOutcome[object]], _inputs: Inputs, /
    ) -> Reply | None:
        """Return the winner's first reply or None; the content that came up first wins a tie.

        First is in declared order. A reply that has no answer does not vote.

        Raises:
            GraphFailed: a branch brought something else than a reply.
        """
        ballot = [
            _Vote(key, reply.content, reply)
            for _, reply in find_replies(outcomes)
            if (key := answer_key(reply.content, self.normalize)) is not None
        ]
        winner, votes = _count(ballot)
        return winner.reply if winner is not None and votes >= self.min_votes else None


class Majority(msgspec.Struct, frozen=True):
    """The answer that most replies give."""

    answer: str
    """As the first of them spells it, without white space around."""
    reply: Reply
    """The first of them, in declared order."""
    votes: int
    voters: int
    """How many replies give an answer at all."""

    @property
    def share(self) -> float:
        """Return the part of the voters that agree, above 0 and at most 1."""
        return self.votes / self.voters


@attrs.frozen
class FindMajority:
    """Picks the answer that most replies give (self-consistency), be it a single one.

    Source: Wang et al., "Self-Consistency Improves Chain of Thought Reasoning in Language Models".
    """

    extract: Extraction = "content"
    pattern: str | None = attrs.field(default=None, validator=partial(check_expression, groups=1))
    """For `extract: pattern`."""
    member: str | None = None
    """For `extract: json`."""
    normalize: Normalization = "trimmed"

    def __attrs_post_init__(self) -> None:
        wanted = {"pattern": self.pattern, "json": self.member}
        if wanted.get(self.extract, "") is None:
            field = "pattern" if self.extract == "pattern" else "member"
            raise ValueError(f"extract: {self.extract} needs {field}")

    def __call__(self, outcomes: Sequence[BranchOutcome[object]], _inputs: Inputs, /) -> Majority:
        """Return the winner; the answer that came up first wins a tie.

        Raises:
            GraphFailed: no branch succeeded, no reply has an answer, or a branch brought something
                else than a reply.
        """
        replies = find_replies(outcomes)
        if not replies:
            raise no_success(outcomes)
        ballot = [vote for _, reply in replies if (vote := self._vote(reply)) is not None]
        winner, votes = _count(ballot)
        if winner is None:
            raise GraphFailed(f"none of {len(replies)} replies has an answer")
        return Majority(winner.answer.strip(), winner.reply, votes, len(ballot))

    def _vote(self, reply: Reply) -> "_Vote | None":
        pattern, member = self.pattern or "", self.member or ""
        answer = extract_answer(reply.content, self.extract, pattern=pattern, member=member)
        key = None if answer is None else answer_key(answer, self.normalize)
        return None if answer is None or key is None else _Vote(key, answer, reply)


@attrs.frozen
class _Vote:
    key: str | Decimal
    answer: str
    reply: Reply


def _count(ballot: Sequence[_Vote]) -> tuple[_Vote | None, int]:
    """Return the first vote for the most frequent key and how many there are for it."""
    votes = Counter(vote.key for vote in ballot)
    winner = max(ballot, key=lambda vote: votes[vote.key], default=None)
    return winner, votes[winner.key] if winner is not None else 0


QUORUM = Extension[Aggregate](name="quorum", config=Quorum)
MAJORITY = Extension[Aggregate](name="majority", config=FindMajority)
