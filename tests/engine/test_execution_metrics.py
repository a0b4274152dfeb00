"""What operators see of graphs: calls, durations, tokens and cost, by the reference's names."""

import trio
import trio.testing

from tests.fakes.graph_scene import GraphScene, said, start_graph
from tests.gateway.test_accounting import PARALLEL, SEQUENCE
from tests.upstream.scenes import OK, SILENT, failing
from tests.upstream.test_metrics import samples
from vsr.compose.metrics import load_metrics
from vsr.engine.execution_metrics import execution_metrics
from vsr.engine.execution_stats import ExecutionStats


def of(name: str, **labels: str) -> str:
    """Return the name of a sample of the stage `answer`, unless it says another one."""
    named = sorted({"algorithm": "tested", "stage": "answer", **labels}.items())
    shown = ",".join(f'{key}="{value}"' for key, value in named)
    return f"llm_looper_{name}{{{shown}}}"


def read(scene: GraphScene) -> dict[str, float]:
    """Return the samples about graphs, as the Router tells them."""
    found = samples(load_metrics(scene.router.router)())
    return {name: value for name, value in found.items() if name.startswith("llm_looper_")}


async def test_calls_count_by_status_and_reason(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """All calls of a panel are calls of one stage; the client's answer waits for the slowest."""
    scene = await start_graph(
        nursery, PARALLEL, [(1.0, said())], [(4.0, said(has_usage=False))], [(2.0, *failing(503))]
    )

    await scene.ask()
    found = read(scene)

    attempts = {name: each for name, each in found.items() if "attempts_total" in name}
    assert attempts == {
        of("attempts_total", reason="upstream_error", status="failed"): 1,
        of("attempts_total", reason="none", status="succeeded"): 2,
    }
    assert found[of("attempt_duration_seconds_sum", status="succeeded")] == 5
    assert found[of("attempt_duration_seconds_sum", status="failed")] == 2
    assert found[of("attempt_first_byte_seconds_count")] == 3
    assert found[of("attempt_first_byte_seconds_sum")] == 7
    execution = 'llm_looper_execution_duration_seconds_sum{algorithm="tested",status="succeeded"}'
    assert found[execution] == 4


async def test_tokens_and_cost_are_those_that_are_known(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A backend that does not say what it used adds nothing, and no zero either."""
    scene = await start_graph(nursery, SEQUENCE, [(said(),)], [(said(has_usage=False),)])

    await scene.ask()
    await scene.ask()

    found = read(scene)
    tokens = {name: each for name, each in found.items() if "tokens" in name or "cost" in name}
    assert tokens == {
        of("attempt_tokens_total", stage="draft", token_type="prompt"): 6,
        of("attempt_tokens_total", stage="draft", token_type="completion"): 8,
        of("attempt_cost_total", stage="draft", currency="EUR"): 22e-6,
    }


async def test_cancelled_and_late_graphs_are_told_apart(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """By the status of the execution, and the reason of the call."""
    scene = await start_graph(nursery, SEQUENCE, [SILENT], [OK], limits="limits: {timeout: 10s}")

    await scene.ask()
    client = await scene.begin()
    await trio.sleep(3)
    client.close()
    await trio.testing.wait_all_tasks_blocked()

    found = read(scene)
    ends = {name: each for name, each in found.items() if "_duration_seconds_sum" in name}
    sums = "llm_looper_execution_duration_seconds_sum"
    assert ends[f'{sums}{{algorithm="tested",status="timed_out"}}'] == 10
    assert ends[f'{sums}{{algorithm="tested",status="cancelled"}}'] == 3
    assert {name for name in found if "attempts_total" in name} == {
        of("attempts_total", stage="draft", reason="deadline_exceeded", status="timed_out"),
        of("attempts_total", stage="draft", reason="request_cancelled", status="cancelled"),
    }


async def test_plain_request_counts_nowhere(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Nor does a Router without requests have series of graphs."""
    scene = await start_graph(nursery, SEQUENCE, [(said(),)], [OK])

    await scene.ask(body=b'{"model":"alpha","messages":[{"role":"user","content":"q"}]}')

    assert read(scene) == {}
    assert scene.backends[0].calls


async def test_counts_outlive_a_configuration(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """They are of the process: a request under way when it changes is counted as well."""
    scene = await start_graph(nursery, SEQUENCE, [(2.0, said())], [(said(),)])
    client = await scene.begin()
    await trio.sleep(1)

    scene.router.activate(scene.router.generation.snapshot, 2)
    await trio.sleep(5)

    client.close()
    assert sum(value for name, value in read(scene).items() if "attempts_total" in name) == 2


def test_families_are_told_before_there_is_anything_to_count() -> None:
    """So that a dashboard finds their names."""
    names = [family.name for family in execution_metrics(ExecutionStats())]

    assert names == [
        "llm_looper_attempts",
        "llm_looper_attempt_duration_seconds",
        "llm_looper_attempt_first_byte_seconds",
        "llm_looper_attempt_tokens",
        "llm_looper_attempt_cost",
        "llm_looper_execution_duration_seconds",
    ]
