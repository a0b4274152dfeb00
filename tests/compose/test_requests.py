"""Questions about requests: what a worker answers, and what a supervisor makes of the answers."""

import attrs
import msgspec
import pytest
import trio
import trio.testing

from tests.demo.raw_client import chat_body
from tests.fakes.configuration import detail
from tests.fakes.graph_scene import said
from tests.fakes.router import document_of, start_router
from tests.upstream.scenes import model_over, start_backends
from vsr.compose.requests import FIND, LIST, RequestsOfWorkers, answer
from vsr.gateway.requests import Requests
from vsr.network.memory import MemoryNetwork
from vsr.routing.request_views import RequestList
from vsr.workers.asking import Answers


@attrs.define
class FakeWorkers:
    """Workers 0, 1 and 2, the last of which never answers."""

    each: list[Requests]

    async def ask(self, topic: str, question: bytes = b"") -> Answers:
        """Answer as they do."""
        await trio.lowlevel.checkpoint()
        told = {worker: answer(it, topic, question) for worker, it in enumerate(self.each)}
        return Answers(told, (2,))


async def test_workers_are_asked_as_one(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A request is found at whoever has it, and who is silent is named."""
    network = MemoryNetwork()
    backends = await start_backends(nursery, network, [[(said(),)]])
    router = await start_router(nursery, network, document_of(model_over(backends)))
    await router.ask(chat_body(model="alpha"), lines=[(b"x-request-id", b"mine")])
    asked = RequestsOfWorkers(FakeWorkers([Requests(), router.router.gateway.requests]).ask)

    told = await asked.requests(10)
    found = await asked.request("mine", told.ended[0].start_time)

    assert [(each.id, each.worker) for each in told.ended] == [("mine", 1)]
    assert (told.missing_workers, told.kept) == ((2,), 200)
    assert found is not None
    assert (found.request.worker, found.attempts[0].endpoint) == (1, "backend-1")
    assert await asked.request("other", "") is None


def test_other_topics_are_refused() -> None:
    """They are answered elsewhere."""
    with pytest.raises(ValueError, match="metrics"):
        answer(Requests(), "metrics", b"")


def test_views_survive_the_way() -> None:
    """As they are told by one process."""
    one = detail("a")

    assert msgspec.msgpack.decode(msgspec.msgpack.encode(one), type=type(one)) == one
    told = answer(Requests(), LIST, b"\x81\xa5limit\x05")
    assert msgspec.msgpack.decode(told, type=RequestList) == RequestList(kept=200)
    assert (
        answer(Requests(), FIND, msgspec.msgpack.encode({"id": "a", "start_time": ""})) == b"\xc0"
    )
