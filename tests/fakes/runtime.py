"""A model runtime that answers as a test says, and remembers what it was asked."""

from collections.abc import Mapping

import attrs
import trio


@attrs.define(eq=False)
class ScriptedRuntime:
    """Implements `routing.ports.Runtime`: waits, then answers by key, or fails."""

    answers: Mapping[str, bytes] = attrs.field(factory=dict)
    """By key; keys that were not asked for are not answered, and the others are unknown."""
    delay_s: float = 0.0
    """Before every answer and every failure."""
    failure: Exception | None = None
    """Raised in place of an answer."""
    bundles: list[Mapping[str, bytes]] = attrs.field(factory=list, init=False)
    """What it was asked, one mapping per call, in order."""
    cancelled_at: list[float] = attrs.field(factory=list, init=False)
    """When calls were given up by who made them."""

    async def evaluate(self, bundle: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """Answer `bundle` after the delay."""
        self.bundles.append(dict(bundle))
        try:
            await trio.sleep(self.delay_s)
        except trio.Cancelled:
            self.cancelled_at.append(trio.current_time())
            raise
        if self.failure is not None:
            raise self.failure
        return {key: self.answers[key] for key in bundle if key in self.answers}
