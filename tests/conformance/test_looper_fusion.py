"""Cases of fusion that a fixture cannot state."""

from collections.abc import Mapping
from pathlib import Path

import attrs
import trio
import trio.testing

from tests.conformance.looper import CaseRun
from tests.conformance.looper_case import read_case
from tests.conformance.looper_grounding import ScriptedClassifiers

OWN = Path(__file__).parents[2] / "fixtures" / "looper"


class BrokenRuntime(ScriptedClassifiers):
    """A model runtime whose every request fails."""

    async def evaluate(self, bundle: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """Fail after a moment."""
        await trio.lowlevel.checkpoint()
        raise OSError(f"no connection for {len(bundle)} asks")


def test_grounding_by_a_runtime_that_fails_is_as_without_classifiers() -> None:
    """Passed over where failures are, else the end of the run; no bug of the Router's."""
    case = read_case(OWN / "fusion-30-grounding-missing.yaml")
    run = CaseRun(attrs.evolve(case, turns=case.turns[:2]), classifiers=BrokenRuntime())

    trio.run(run.serve, clock=trio.testing.MockClock(autojump_threshold=0))

    assert run.differences == []
