"""A Router in memory with HTTP/2 clients."""

import trio

from tests.demo.raw_client import chat_body
from tests.fakes.backend import start_backend
from tests.fakes.h2_client import H2Client
from tests.fakes.router import RunningRouter, document_of, model_of, start_router
from vsr.demo.script import Script
from vsr.demo.server import DemoModel
from vsr.network.memory import MemoryNetwork

IDLE_S = 60
WHOLE = chat_body(model="auto")
STREAM = chat_body(model="auto", stream=True)
SOON_S = 0.05
"""Within this a call ends whose client is gone."""


async def start(
    nursery: trio.Nursery, script: Script | None = None, *, reliability: str = ""
) -> tuple[RunningRouter, DemoModel]:
    """Start a Router with one demo model."""
    network = MemoryNetwork()
    backend = await start_backend(nursery, network, script)
    model = (
        model_of(backend.port, reliability=reliability) if reliability else model_of(backend.port)
    )
    document = document_of(model, listener=f"timeout: {IDLE_S}s")
    return await start_router(nursery, network, document), backend


async def connect(
    nursery: trio.Nursery,
    router: RunningRouter,
    *,
    settings: dict[int, int] | None = None,
    gives_credit: bool = True,
    answers: bool = True,
) -> H2Client:
    """Open an HTTP/2 connection to the Router."""
    client = H2Client(
        await router.connect(), settings=settings or {}, gives_credit=gives_credit, answers=answers
    )
    return await client.start(nursery)
