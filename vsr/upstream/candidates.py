"""What fallbacks know of models: a circuit breaker for each, shared by configurations in turn."""

from collections.abc import Collection

import attrs

from vsr.resources.reliability import CandidateBreaker
from vsr.resources.snapshot import Snapshot
from vsr.upstream.policy.candidate_breaker import CandidateState

Candidate = tuple[str, CandidateBreaker]
"""A model, and the settings that it is judged with."""


@attrs.define(eq=False)
class CandidateBreakers:
    """Keeps what is known of a candidate as long as some configuration has it."""

    _states: dict[Candidate, CandidateState] = attrs.field(factory=dict, init=False)
    _wanted: dict[object, Collection[Candidate]] = attrs.field(factory=dict, init=False)
    """By the configuration that has them."""

    def __len__(self) -> int:
        """Return of how many candidates something is known."""
        return len(self._states)

    def of(self, model: str, settings: CandidateBreaker) -> CandidateState:
        """Return what is known of `model` by these settings, closed at first."""
        found = self._states.get((model, settings))
        if found is None:
            found = self._states[model, settings] = CandidateState(settings)
        return found

    def join(self, user: object, snapshot: Snapshot) -> None:
        """Keep what is known of the candidates in `snapshot` until `user` leaves."""
        self._wanted[user] = _candidates_in(snapshot)

    def leave(self, user: object) -> None:
        """Forget the candidates that nobody else has; leaving twice does nothing.

        No call of `user` may be under way: what it told would be kept for good.
        """
        if self._wanted.pop(user, None) is None:
            return
        wanted = frozenset[Candidate]().union(*self._wanted.values())
        for candidate in self._states.keys() - wanted:
            del self._states[candidate]


def _candidates_in(snapshot: Snapshot) -> frozenset[Candidate]:
    return frozenset(
        (ref.model, decision.fallback.breaker)
        for program in snapshot.programs
        for decision in program.decisions
        if decision.fallback.enabled
        for ref in decision.model_refs
    )
