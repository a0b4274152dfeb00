"""Admission: asked once per request, and told once when the request has ended."""

import attrs
import trio
import trio.testing

from tests.demo.raw_client import chat_body
from tests.fakes.backend import start_backend
from tests.fakes.router import RunningRouter, document_of, model_of, start_router
from vsr.demo.faults import Fault
from vsr.demo.script import Script
from vsr.network.memory import MemoryNetwork
from vsr.routing.request import Request


@attrs.define
class CountingAdmission:
    """Lets in at most `limit` requests at a time."""

    limit: int
    inside: int = 0
    admitted: int = 0

    def admit(self, request: Request) -> bool:
        """Let `request` in if there is room."""
        del request
        if self.inside >= self.limit:
            return False
        self.inside += 1
        self.admitted += 1
        return True

    def release(self, request: Request) -> None:
        """Make room."""
        del request
        self.inside -= 1


async def _start(
    nursery: trio.Nursery, script: Script, limit: int
) -> tuple[RunningRouter, CountingAdmission]:
    network = MemoryNetwork()
    backend = await start_backend(nursery, network, script)
    router = await start_router(nursery, network, document_of(model_of(backend.port)))
    admission = CountingAdmission(limit)
    router.router.gateway.admission = admission
    return router, admission


async def test_request_that_is_not_admitted_is_told_so(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """In JSON, without a call; and nothing is given back that was not taken."""
    router, admission = await _start(nursery, Script(), 0)

    got = await router.ask(chat_body(model="auto"))

    error = got.json()["error"]
    assert isinstance(error, dict)
    assert (got.status, error["code"]) == (503, "overloaded")
    assert (admission.inside, admission.admitted) == (0, 0)
    assert (await router.log())[0]["attempts"] == 0


async def test_place_is_given_back_however_the_request_ends(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Answered, failed, or left by its client."""
    router, admission = await _start(nursery, Script(faults=(None, 503, Fault.SILENCE)), 1)

    statuses = [(await router.ask(chat_body(model="auto"))).status for _ in range(2)]
    client = await router.connect()
    body = chat_body(model="auto")
    await client.send(
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: r\r\nContent-Length: %d\r\n\r\n%b"
        % (len(body), body)
    )
    await trio.sleep(1)
    inside = admission.inside
    client.close()
    await trio.sleep(1)

    assert statuses == [200, 503]
    assert inside == 1
    assert (admission.inside, admission.admitted) == (0, 3)
