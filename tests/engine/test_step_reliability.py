"""`reliability` on a call step: the innermost layer over a call's timeouts and retries."""

import attrs
import trio
import trio.testing

from tests.engine.test_fallback import BUSY, HUNG, Models, start
from vsr.engine.pipeline import RoutingEngine
from vsr.graph.run import PlainTail
from vsr.resources.reliability import CallOverride, RetryOn, RetryOverride

TWICE = CallOverride(retry=RetryOverride(count=2, on=frozenset({RetryOn.FIVE_XX})))


def with_step(models: Models, reliability: CallOverride) -> None:
    """Let requests run a graph whose call step changes this."""
    engine = models.router.generation.engine
    assert isinstance(engine, RoutingEngine)
    engine._settings = attrs.evolve(engine._settings, plain=PlainTail(reliability))


async def test_step_adds_retries_to_a_model_that_has_none(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The model's own policy makes one attempt."""
    models = await start(nursery, "enabled: false", models=("alpha",))
    assert await models.answer(BUSY) == (503, ["alpha"])

    with_step(models, TWICE)

    assert await models.answer(BUSY) == (503, ["alpha"] * 3)
    assert not any(await models.held())


async def test_step_goes_before_decision_and_model(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """What it leaves out stays theirs: here their retries, with a shorter time for each try."""
    own = "retry_count: 1, retry_on: '5xx', per_try_timeout: 8s"
    models = await start(
        nursery, "enabled: false", models=("alpha",), decision="per_try_timeout: 6s", alpha=own
    )

    with_step(models, CallOverride(per_try_s=2))

    begun_at = trio.current_time()
    assert await models.answer(HUNG) == (504, ["alpha"] * 2)
    assert 4 <= trio.current_time() - begun_at < 5


async def test_step_holds_for_the_models_that_a_failed_call_goes_on_to(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Each of them is called as the step says."""
    models = await start(nursery, "enabled: true")

    with_step(models, TWICE)

    called = ["alpha"] * 3 + ["beta"] * 3 + ["gamma"] * 3
    assert await models.answer(BUSY, BUSY, BUSY) == (503, called)
