"""Faults of a backend under each policy, on real sockets: the calls made, what the client gets."""

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
import yaml

from tests.demo.raw_client import AnswerEnd, Got, ask, chat_body
from tests.e2e.standalone import start_document
from tests.fakes.backend import start_backend
from tests.fakes.router import clusters_of
from vsr.compose.router import Router
from vsr.demo.faults import Fault
from vsr.demo.script import Script
from vsr.demo.server import DemoModel
from vsr.network.epoll import EpollNetwork

_FILE = Path(__file__).parents[2] / "fixtures" / "reliability" / "faults.yaml"
TABLE: dict[str, Any] = yaml.safe_load(_FILE.read_text())
ROWS: list[dict[str, Any]] = TABLE["rows"]
POLICIES: dict[str, dict[str, Any]] = TABLE["policies"]
_LIMITS = ("per_try_timeout", "first_byte_timeout", "connect_timeout")
_PATIENCE_S = 20


def test_table_has_every_fault_that_is_promised() -> None:
    """The cases below run on something, and each row says what each policy comes to."""
    assert len(ROWS) >= 15
    assert all(set(POLICIES) <= set(row) for row in ROWS)


@attrs.frozen
class Met:
    """What one request came to."""

    alpha: DemoModel
    beta: DemoModel
    router: Router
    got: Got
    line: dict[str, Any]
    took_s: float


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("row", ROWS, ids=[row["name"] for row in ROWS])
async def test_fault_comes_to_what_the_table_says(
    row: dict[str, Any], policy: str, nursery: trio.Nursery
) -> None:
    """Calls of either backend, status and body, and nothing held afterwards."""
    alpha_calls, beta_calls, status, begins = row[policy]

    met = await _meet(nursery, row, POLICIES[policy])

    calls = len(met.alpha.calls), len(met.beta.calls)
    assert (*calls, met.got.status) == (alpha_calls, beta_calls, status)
    assert met.got.body.startswith(begins.encode())
    assert met.got.end is (AnswerEnd.CUT if row.get("is_cut") else AnswerEnd.WHOLE)
    attempts = row.get("attempts", {}).get(policy, alpha_calls + beta_calls)
    assert met.line["attempts"] == attempts
    assert met.line["model"] == ("beta" if beta_calls else "alpha")
    if policy != "none":
        assert met.took_s >= row.get("waits_s", 0)
    path = [b"fallback", b"alpha,beta", b"2", b"beta"] if beta_calls else None
    names = ("response-path", "fallback-path", "fallback-attempts", "selected-model")
    if path is not None:
        assert [met.got.line(b"x-vsr-" + name.encode()) for name in names] == path
    generation = met.router.active.current
    assert generation is not None
    assert (generation.leases, clusters_of(generation).connections_in_use) == (0, 0)


def fault_script(row: dict[str, Any]) -> Script:
    """Return what a row's `alpha` does."""
    faults = [Fault(each) if isinstance(each, str) else each for each in row.get("faults", [None])]
    script = Script("alpha", faults=tuple(faults), fault=faults[-1])
    return attrs.evolve(script, retry_after_s=row.get("retry_after"))


async def _meet(nursery: trio.Nursery, row: dict[str, Any], policy: dict[str, Any]) -> Met:
    network = EpollNetwork()
    await nursery.start(network.run)
    alpha = await start_backend(nursery, network, fault_script(row))
    beta = await start_backend(nursery, network, Script("beta"))
    with unreachable(row.get("backend")) as port:
        text = _document(row, policy, port or alpha.port, beta.port)
        router, access_log, log_text = await start_document(nursery, network, text)
        client = await network.connect("127.0.0.1", router.server.ports["public"])
        body = chat_body(model="auto", stream=row.get("stream", False))
        began_at = trio.current_time()
        got = await ask(client, body, patience_s=_PATIENCE_S)
        took_s = trio.current_time() - began_at
        client.close()
    await access_log.flush()
    [line] = [json.loads(each) for each in b"".join(log_text).splitlines()]
    return Met(alpha, beta, router, got, line, took_s)


def _document(row: dict[str, Any], policy: dict[str, Any], alpha: int, beta: int) -> str:
    limits = {key: row[key] for key in _LIMITS if key in row}
    decision = {
        "name": "all",
        "modelRefs": [{"model": "alpha"}, {"model": "beta"}],
        "algorithm": {"type": "static"},
    }
    if "fallback" in policy:
        decision["fallback"] = policy["fallback"]
    document = {
        "version": "v0.3",
        "listeners": [{"name": "public", "address": "127.0.0.1", "port": 1}],
        "providers": {
            "models": [
                {
                    "name": "alpha",
                    "backend_refs": [{"endpoint": f"127.0.0.1:{alpha}"}],
                    "reliability": {**policy["reliability"], **limits},
                },
                {"name": "beta", "backend_refs": [{"endpoint": f"127.0.0.1:{beta}"}]},
            ]
        },
        "routing": {"decisions": [decision]},
    }
    return yaml.safe_dump(document)


@contextmanager
def unreachable(kind: str | None) -> Iterator[int]:
    """Yield a port of that kind: `refused`, where nobody listens, or `deaf`; 0 for neither."""
    if kind is None:
        yield 0
        return
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        address = listener.getsockname()
        if kind == "refused":
            yield address[1]
            return
        # A full accept queue: the kernel drops what would open another connection.
        listener.listen(0)
        with ExitStack() as waiting:
            for _ in range(2):
                each = waiting.enter_context(socket.socket())
                each.settimeout(0)
                each.connect_ex(address)
            yield address[1]
