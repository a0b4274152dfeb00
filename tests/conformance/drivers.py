"""Both ways in which a case is driven, each to the same record."""

from collections.abc import Sequence

import attrs

from tests.fakes.graph import FakeTasks
from tests.fakes.phase_driver import PhaseDriver, Split
from vsr.routing.engine import Engine
from vsr.routing.parity.body_diff import Difference
from vsr.routing.parity.case import Case
from vsr.routing.parity.corpus import Judge
from vsr.routing.parity.in_process import record_in_process
from vsr.routing.parity.record import Record


async def in_process(engine: Engine, case: Case) -> Record:
    """Return the record of `case` as standalone mode serves it."""
    return await record_in_process(engine, case, FakeTasks())


async def by_phases(engine: Engine, case: Case, split: Split | None = None) -> Record:
    """Return the record of `case` as an adapter's callbacks serve it."""
    return await PhaseDriver(engine, FakeTasks(), split or Split()).record(case)


@attrs.frozen
class Comparison:
    """What one case came to, both ways."""

    name: str
    in_process: Sequence[Difference]
    by_phases: Sequence[Difference]

    @property
    def is_equal(self) -> bool:
        """Return whether nothing differs."""
        return not self.in_process and not self.by_phases


async def compared(engine: Engine, case: Case, judge: Judge) -> Comparison:
    """Return how both records of `case` differ from what is expected."""
    return Comparison(
        case.name,
        judge.differences(await in_process(engine, case)),
        judge.differences(await by_phases(engine, case)),
    )
