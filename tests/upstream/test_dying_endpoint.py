"""An endpoint that dies under load and comes back: no client hears of it."""

from collections import Counter

import pytest
import trio
import trio.testing

from tests.demo.raw_client import Got, chat_body
from tests.fakes.backend import BACKEND_HOST
from tests.fakes.router import clusters_of, start_router
from vsr.demo.script import Script
from vsr.demo.server import DemoModel
from vsr.network.memory import MemoryNetwork

PER_SECOND = 200
DOCUMENT = """
listeners: [{{name: http, address: 127.0.0.1, port: 8899}}]
providers:
  defaults: {{model: alpha}}
  models:
    - name: alpha
      backend_refs:
        - {{name: stays, endpoint: "127.0.0.1:{stays}"}}
        - {{name: dies, endpoint: "127.0.0.1:{dies}"}}
      reliability: {{retry_count: 1, retry_on: "connect-failure,reset,5xx"{more}}}
"""


async def _run_until(
    backend: DemoModel, port: int, *, task_status: trio.TaskStatus[trio.CancelScope]
) -> None:
    """Run a backend until its scope is cancelled, which drops its connections."""
    with trio.CancelScope() as life:
        async with trio.open_nursery() as tasks:
            await tasks.start(backend.run, BACKEND_HOST, port)
            task_status.started(life)


@pytest.mark.parametrize("more", ["", ", consecutive_5xx: 3, base_ejection_time: 1s"])
async def test_no_client_hears_of_an_endpoint_that_dies(
    more: str, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """200 requests/s for 40 s; it dies after 10 s, and traffic returns when it is back at 20 s."""
    network = MemoryNetwork()
    script = Script(latency_s=0.004)
    stays, dies = DemoModel(network, script), DemoModel(network, script)
    await nursery.start(_run_until, stays, 0)
    life = await nursery.start(_run_until, dies, 0)
    document = DOCUMENT.format(stays=stays.port, dies=dies.port, more=more)
    router = await start_router(nursery, network, document)
    answers: list[Got] = []
    back = DemoModel(network, script)

    async def ask() -> None:
        answers.append(await router.ask(chat_body(model="auto")))

    async with trio.open_nursery() as asking:
        for number in range(40 * PER_SECOND):
            match number / PER_SECOND:
                case 10:
                    life.cancel()
                case 20:
                    await nursery.start(_run_until, back, dies.port)
            asking.start_soon(ask)
            await trio.sleep(1 / PER_SECOND)

    assert Counter(got.status for got in answers) == {200: 40 * PER_SECOND}
    assert len(back.calls) > 0
    first_back = back.calls[0].ended_at
    assert first_back is not None
    assert first_back < 20 + 12
    retries = clusters_of(router.generation).cluster_for(b"alpha").state.stats.retries
    assert sum(retries.values()) >= 3
    assert await router.held() == (0, 0)
