"""The listener of operators."""

from collections.abc import Callable, Sequence

import pytest
import trio

from tests.demo.raw_client import AnswerEnd, ask
from vsr.gateway.answering import Answerer, AnsweringFront, ReadBody
from vsr.gateway.serve import Server
from vsr.headers import HeaderLine
from vsr.network.memory import MemoryNetwork
from vsr.resources.listener import Listener


async def echo(
    method: bytes, target: bytes, lines: Sequence[HeaderLine], read_body: ReadBody
) -> tuple[int, list[HeaderLine], bytes]:
    """Answer with what was asked."""
    body = await read_body(100)
    if target == b"/fail":
        raise RuntimeError("canary of an internal failure")
    return 201, [(b"x-own", dict(lines).get(b"x-own", b""))], b" ".join([method, target, body])


async def start(nursery: trio.Nursery, load: Callable[[], Answerer]) -> MemoryNetwork:
    """Start a listener on port 8080."""
    network = MemoryNetwork()
    await nursery.start(network.run)
    server = Server(network, AnsweringFront(load))
    await server.bind([Listener("management", "127.0.0.1", 8080, 60.0)])
    await nursery.start(server.run)
    return network


async def test_request_is_answered_by_the_function(nursery: trio.Nursery) -> None:
    """Method, path and query, fields and body; connections are kept."""
    network = await start(nursery, lambda: echo)
    client = await network.connect("x", 8080)

    for _ in range(2):
        got = await ask(client, b"body", target=b"/a?b", method=b"PUT", lines=[(b"x-own", b"1")])
        assert (got.status, got.body, got.line(b"x-own")) == (201, b"PUT /a?b body", b"1")
        assert got.is_reusable
    head = await ask(client, target=b"/a", method=b"HEAD")
    assert (head.status, head.body, head.end) == (201, b"", AnswerEnd.WHOLE)


async def test_failure_is_told_without_its_words(
    nursery: trio.Nursery, caplog: pytest.LogCaptureFixture
) -> None:
    """They are in the log, and the next request is answered."""
    network = await start(nursery, lambda: echo)
    client = await network.connect("x", 8080)

    failed = await ask(client, target=b"/fail", method=b"GET")
    fine = await ask(client, target=b"/", method=b"GET")

    assert (failed.status, b"canary" in failed.body, fine.status) == (500, False, 201)
    assert "canary of an internal failure" in caplog.text


async def test_answerer_is_loaded_once_and_for_the_first_request(nursery: trio.Nursery) -> None:
    """Also if two ask at the same time."""
    loads: list[int] = []

    def load() -> Answerer:
        loads.append(1)
        return echo

    network = await start(nursery, load)
    before = list(loads)

    async def once() -> None:
        client = await network.connect("x", 8080)
        assert (await ask(client, target=b"/", method=b"GET")).status == 201

    async with trio.open_nursery() as tasks:
        for _ in range(3):
            tasks.start_soon(once)

    assert (before, loads) == ([], [1])
