"""A demo model server whose answers somebody else writes."""

import trio

from tests.demo.raw_client import ask, chat_body
from vsr.demo.reply import Reply, Seen
from vsr.demo.script import Script
from vsr.demo.server import DemoModel
from vsr.network.memory import MemoryNetwork


async def test_answers_may_be_somebody_else_s() -> None:
    """Who writes them sees the request and the script of the call; faults stay those of it."""
    asked: list[tuple[bytes, float]] = []

    def respond(seen: Seen, script: Script) -> Reply:
        asked.append((seen.body, script.latency_s))
        return Reply(200, (), b"mine")

    network = MemoryNetwork()
    async with trio.open_nursery() as nursery:
        backend = DemoModel(network, Script(latency_s=0.0), respond=respond)
        await nursery.start(backend.run, "backend", 0)
        client = await network.connect("backend", backend.port)

        got = await ask(client, chat_body("Hi"))

        nursery.cancel_scope.cancel()
    assert got.body == b"mine"
    assert asked == [(chat_body("Hi"), 0.0)]
