"""Whole calls through the upstream layer: any configuration, any faults, any clients."""

import attrs
import pytest
import trio
import trio.testing
from hypothesis import HealthCheck, Phase, given, settings

from tests.upstream.call_rules import broken_limit, check_end, check_still
from tests.upstream.call_scenarios import Ask, Leave, Reload, Scenario, Step, Turn, Wait, scenarios
from tests.upstream.call_world import World

PRESENT = 10
"""Clients at once."""
PATIENCE_S = 40.0
"""Behind the last step; whoever is still there then leaves."""
PHASES = (Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink)
"""Without an explanation: it would play every scenario hundreds of times more."""


@attrs.define(eq=False)
class Watch(trio.abc.Instrument):
    """Looks on at every step of any task, and lets clients leave behind theirs."""

    world: World
    broken: list[str] = attrs.field(factory=list, init=False)

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        """Note what does not hold; an instrument must not raise."""
        del task
        self.broken += filter(None, map(broken_limit, self.world.states))
        for guest in self.world.present:
            guest.steps += 1
            if guest.steps == guest.ask.leaves_behind:
                guest.leave()


async def play(scenario: Scenario) -> World:
    """Play a scenario and check it on the way and at its end."""
    world = World(scenario)
    async with trio.open_nursery() as nursery:
        await world.start(nursery)
        tasks = trio.lowlevel.current_statistics().tasks_living
        world.serve(scenario.configurations[0], nursery)
        watch = Watch(world)
        trio.lowlevel.add_instrument(watch)
        async with trio.open_nursery() as guests:
            for step in scenario.steps:
                await _do(world, step, nursery, guests)
                await trio.testing.wait_all_tasks_blocked()
                check_still(world)
            await trio.sleep(PATIENCE_S)
            for guest in world.present:
                guest.leave()
        check_still(world)
        check_end(world)
        trio.lowlevel.remove_instrument(watch)
        assert watch.broken == []
        assert world.active.current is not None
        world.active.current.retire()
        await trio.testing.wait_all_tasks_blocked()
        assert world.network.open_connections == 0
        assert trio.lowlevel.current_statistics().tasks_living == tasks
        nursery.cancel_scope.cancel()
    return world


async def _do(world: World, step: Step, nursery: trio.Nursery, guests: trio.Nursery) -> None:
    present = world.present
    match step:
        case Ask():
            if len(present) < PRESENT:
                world.welcome(step, guests)
        case Wait(seconds):
            await trio.sleep(seconds)
        case Leave(who):
            if present:
                present[who % len(present)].leave()
        case Turn(backend, reach):
            world.network.turn(backend, reach)
        case Reload(number):
            configurations = world.scenario.configurations
            world.serve(configurations[number % len(configurations)], nursery)


def run(scenario: Scenario) -> World:
    """Play a scenario on a clock of its own."""
    return trio.run(play, scenario, clock=trio.testing.MockClock(autojump_threshold=0))


@settings(max_examples=60, deadline=None, derandomize=True, phases=PHASES)
@given(scenario=scenarios)
def test_calls_keep_their_rules(scenario: Scenario) -> None:
    """Field reports C3, L1: whatever happens, nothing is held, late, repeated or told twice."""
    run(scenario)


@pytest.mark.slow
@settings(
    max_examples=2500,
    deadline=None,
    phases=PHASES,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
@given(scenario=scenarios)
def test_calls_keep_their_rules_for_long(scenario: Scenario) -> None:
    """The same with many more scenarios, different ones every time."""
    run(scenario)
