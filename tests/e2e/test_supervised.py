"""The management API of several workers: what all say, and what is done to all."""

import os
import re
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
import trustme

from tests.e2e.process import free_port, start
from tests.e2e.standalone import until
from tests.e2e.test_management import Managed
from tests.e2e.wire import chat, connect, post
from tests.e2e.workers import PATIENCE_S, ask, command, end, pids, rewrite
from tests.fakes.backend import BACKEND_HOST, start_backend
from tests.upstream.tls_scene import write_identity
from vsr.demo.script import Script
from vsr.network.epoll import EpollNetwork

ONE, TWO = (f"/api/v1/backends/small/{name}/quarantine" for name in ("one", "two"))
_TLS = "  - {{name: secure, address: {host}, port: {port}, tls: {{{identity}}}}}\n"
_DOCUMENT = """\
version: v0.3
listeners:
  - {{name: public, address: {host}, port: {port}}}
{tls}providers:
  defaults: {{model: small}}
  models:
    - name: small
      backend_refs:
        - {{name: one, endpoint: "127.0.0.1:{one}"}}
        - {{name: two, endpoint: "127.0.0.1:{two}"}}
routing: {{}}
global:
  services:
    management_api: {{port: {admin}}}
"""


@attrs.define(eq=False)
class Supervised(Managed):
    """A Router with two workers that is managed."""

    @property
    def pids(self) -> list[int]:
        """Return the last process of each worker."""
        found = {one[1]: int(one[2]) for one in _SERVES.finditer(self.started.stderr)}
        return [pid for _, pid in sorted(found.items())]

    async def look(self, what: str) -> Any:  # noqa: ANN401  # JSON
        """Return the answer to a question."""
        answer = await self.ask("GET", f"/api/v1/{what}")
        assert answer.status_code == 200
        return answer.json()

    async def attempts(self) -> dict[str, int]:
        """Return how many attempts each endpoint has answered."""
        [cluster] = (await self.look("backends"))["clusters"]
        return {each["name"]: sum(each["attempts"].values()) for each in cluster["endpoints"]}

    async def in_flight(self) -> dict[str, int]:
        """Return how many requests each endpoint is at."""
        [cluster] = (await self.look("backends"))["clusters"]
        return {each["name"]: each["in_flight"] for each in cluster["endpoints"]}

    async def serve(self, count: int) -> list[int]:
        """Send requests on connections of their own; return how many each endpoint got."""
        before = await self.attempts()
        for _ in range(count):
            answer = await ask(self.started.port)
            assert answer is not None
            assert answer.status == 200
        after = await self.attempts()
        return [after[name] - before[name] for name in ("one", "two")]


_SERVES = re.compile(r"worker (\d+) \(pid (\d+)\) serves version \d+")


@pytest.fixture
async def supervised(nursery: trio.Nursery, tmp_path: Path) -> AsyncIterator[Supervised]:
    """Start one, with streams of about a second; its second listener has a certificate."""
    network = EpollNetwork()
    await nursery.start(network.run)
    script = Script(chunks=20, chunk_interval_s=0.05)
    backends = [await start_backend(nursery, network, script) for _ in range(2)]
    identity = write_identity(trustme.CA().issue_cert(BACKEND_HOST), tmp_path, "own")
    admin, file = free_port(), tmp_path / "config.yaml"
    text = _DOCUMENT.format(
        host=BACKEND_HOST,
        port=free_port(),
        one=backends[0].port,
        two=backends[1].port,
        admin=admin,
        tls=_TLS.format(host=BACKEND_HOST, port=free_port(), identity=identity),
    )
    file.write_text(text)
    started = await start(nursery, command(file), tmp_path / "access.log")
    with trio.fail_after(PATIENCE_S):
        await started.says(re.compile("management API answers"))
    yield Supervised(started, file, text, f"http://127.0.0.1:{admin}")
    for pid in pids(started):
        end(pid)


async def test_what_all_workers_do_is_told_as_one(supervised: Supervised) -> None:
    """Sums are exact, each worker is there; one that hangs is named, and holds nobody up."""
    counts = await supervised.serve(10)
    status, backends = await supervised.look("status"), await supervised.look("backends")
    metrics = (await supervised.ask("GET", "/metrics")).text
    os.kill(supervised.pids[0], signal.SIGSTOP)
    hung, lame = await supervised.look("status"), await supervised.look("backends")
    _, shown = await supervised.run("status")
    _, listed = await supervised.run("backends", "list")
    os.kill(supervised.pids[0], signal.SIGCONT)

    assert sum(counts) == 10
    serving = status["serving"]
    assert [each["pid"] for each in serving["processes"]] == supervised.pids
    assert {each["phase"] for each in serving["processes"]} == {"serving"}
    assert {each["worker"] for each in serving["components"]} == {0, 1, 2}
    assert {each["state"] for each in serving["components"]} == {"running"}
    assert serving["generations"] == [{"version": 1, "active": True, "leases": 0}]
    [endpoint, _] = backends["clusters"][0]["endpoints"]
    assert [each["worker"] for each in endpoint["workers"]] == [1, 2]
    assert 'llm_upstream_requests_total{cluster="small",outcome="2xx"} 10.0' in metrics
    assert (serving["missing"], hung["serving"]["missing"], lame["missing"]) == ([], [1], [1])
    assert "worker 1" in shown
    assert "worker 1: no answer" in listed


async def test_quarantine_leaves_what_is_under_way(supervised: Supervised) -> None:
    """A stream goes on to its end."""
    await supervised.ask("POST", TWO)
    with await connect(supervised.started.port) as client:
        await client.send(post(chat(stream=True)))
        with trio.fail_after(PATIENCE_S):
            under_way = 0
            while not under_way:
                under_way = (await supervised.in_flight())["one"]
        await supervised.ask("DELETE", TWO)
        taken = await supervised.ask("POST", ONE)
        during = await supervised.in_flight()
        stream = await client.answer()

    assert (taken.status_code, taken.json()) == (
        200,
        {"model": "small", "endpoint": "one", "quarantined": True, "left": 1, "missing": []},
    )
    assert during == {"one": 1, "two": 0}
    assert stream is not None
    assert (stream.status, b"[DONE]" in stream.body) == (200, True)


async def test_quarantine_holds_through_all_that_happens(supervised: Supervised) -> None:
    """On every worker, one that begins later too, and under another document."""
    await supervised.ask("POST", ONE)
    kept, ended = [await supervised.serve(6)], supervised.pids[1]
    end(ended)
    await until(lambda: supervised.pids[1] != ended, PATIENCE_S)
    kept.append(await supervised.serve(6))
    rewrite(supervised.file, "name: small\n", "name: small\n      reliability: {max_pending: 9}\n")
    with trio.fail_after(PATIENCE_S):
        await supervised.started.says(re.compile("configuration version 2 serves"))
    kept.append(await supervised.serve(6))
    last = await supervised.ask("POST", TWO)
    code, said = await supervised.run("backends", "release", "small", "one")
    back = await supervised.serve(12)
    entries = (await supervised.look("observability/audit"))["entries"]

    assert kept == [[0, 6]] * 3
    assert (last.status_code, last.json()["error"]["code"]) == (409, "LAST_ENDPOINT")
    assert (code, said) == (0, "one of small gets requests again, if its checks allow it.\n")
    assert sum(back) == 12
    assert back[0] > 0
    done = [(each["action"], each.get("path"), each.get("status")) for each in entries]
    assert [each for each in done if each[0].startswith("backend.")] == [
        ("backend.quarantine", ONE, 200),
        ("backend.quarantine", TWO, 409),
        ("backend.release", ONE, 200),
    ]


async def test_document_that_mends_a_crash_is_served(supervised: Supervised) -> None:
    """Though no worker is left that could say anything of it; by the API, which is there."""
    (supervised.file.parent / "own.key").unlink()
    for pid in supervised.pids:
        end(pid)
    with trio.fail_after(PATIENCE_S):
        await supervised.started.says(re.compile("worker 1 cannot serve"))
        await supervised.started.says(re.compile("worker 2 cannot serve"))
    crashing = await supervised.ask("GET", "/ready")
    mended = re.sub(r".*name: secure.*\n", "", supervised.text)
    answer = await supervised.ask("PUT", "/api/v1/config", {"yaml": mended})
    served = await ask(supervised.started.port)
    code, _ = await supervised.run("drain", "--yes")
    with trio.fail_after(PATIENCE_S):
        ended = await supervised.started.process.wait()

    assert crashing.status_code == 503
    assert (answer.status_code, answer.json()["config_version"]) == (200, 2), answer.text
    assert served is not None
    assert (served.status, served.fields["x-vsr-config-version"]) == (200, "2")
    assert (code, ended) == (0, 0)
