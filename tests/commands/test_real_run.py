"""Graphs run for real, and dry runs held against them."""

import msgspec
import trio

from tests.dryrun.small_graphs import FIXTURES, ledger, scenario_of
from vsr.commands.real_run import ask_for_real
from vsr.commands.virtual_router import start_virtual_router
from vsr.config.report import Report
from vsr.config.source import check_bytes, read_graph
from vsr.demo.faults import Fault
from vsr.demo.script import Script
from vsr.demo.server import DemoModel
from vsr.dryrun.run import dry_run
from vsr.dryrun.scenario import RequestScript
from vsr.dryrun.subject import Subject, in_snapshot
from vsr.network.epoll import EpollNetwork
from vsr.resources.snapshot import Snapshot

SCRIPTS = (
    Script(model="alpha", reply="Canberra.", latency_s=0.12),
    Script(model="beta", reply="Sydney.", latency_s=0.02, faults=(503, Fault.RESET_BEFORE_HEAD)),
    Script(model="gamma", reply="Perth.", latency_s=5.0),
    Script(model="judge", reply="Canberra.", latency_s=0.02),
)
SCENARIO = """
models:
  alpha: {reply: Canberra., latency: 120ms}
  beta: {reply: Sydney., latency: 20ms, calls: [{fault: 503}, {fault: reset}]}
  gamma: {reply: Perth., latency: 5s}
  judge: {reply: Canberra., latency: 20ms}
"""
REQUEST = RequestScript({"messages": [{"role": "user", "content": "Which city?"}]})
PARAMS = {"panel": ["alpha", "beta", "gamma"], "judge": "judge"}


async def test_dry_run_and_real_run_have_the_same_ledger() -> None:
    """Same calls in the same order, same ends and causes, same reservations, same attempts."""
    lines: list[str] = []
    async with trio.open_nursery() as nursery:
        network = EpollNetwork()
        await nursery.start(network.run)
        servers = [DemoModel(network, script) for script in SCRIPTS]
        for server in servers:
            await nursery.start(server.run, "127.0.0.1", 0)
        subject = _subject(_snapshot([server.port for server in servers]))
        real = await ask_for_real(subject, REQUEST, lines.append)
        nursery.cancel_scope.cancel()
    scenario = msgspec.structs.replace(scenario_of(SCENARIO), request=REQUEST)

    dry = await trio.to_thread.run_sync(dry_run, subject, scenario, 0, start_virtual_router)

    assert ledger(dry) == ledger(real)
    assert [len(call.attempts) for call in dry.calls] == [1, 3, 1, 1]
    assert (real.answer.text, real.is_dry) == (dry.answer.text, False)
    assert len(lines) == 2 * len(real.calls)
    assert lines[0].endswith("#1 alpha  panel[0]/answer: asked")


def _snapshot(ports: list[int]) -> Snapshot:
    models = "\n".join(
        f"    - {{name: {script.model}, backend_refs: [{{endpoint: '127.0.0.1:{port}'}}]}}"
        for script, port in zip(SCRIPTS, ports, strict=True)
    )
    head = "version: v0.3\nrouting: {}\nproviders:\n  defaults: {model: judge}\n  models:\n"
    text = f"{head}{models}\n"
    return check_bytes(text.encode(), {}, Report("test")).snapshot


def _subject(snapshot: Snapshot) -> Subject:
    """Return the panel, patient enough with its second expert."""
    text = (FIXTURES / "panel.yaml").read_text(encoding="utf-8")
    text = text.replace("retry_count: 1, retry_on: 5xx", "retry_count: 2, retry_on: '5xx,reset'")
    source = read_graph("panel", text.encode(), {}, file="panel.yaml")
    return in_snapshot(snapshot, (snapshot.programs[0], source), PARAMS)
