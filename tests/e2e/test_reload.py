"""The document changes while clients are served: nobody notices but by the version."""

import logging
import socket
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest
import trio

from tests.e2e.standalone import document, run_until_cancelled
from tests.e2e.wire import chat, connect, post
from tests.fakes.backend import start_backend
from vsr.compose.generation import Parts
from vsr.compose.installation import LocalInstallation
from vsr.compose.live import LiveConfiguration, open_document
from vsr.compose.router import Router
from vsr.config.attempt import Attempt
from vsr.demo.script import Script
from vsr.network.epoll import EpollNetwork
from vsr.telemetry.access_log import AccessLog

LASTS_S = 3.0
"""At least; on a busy machine, until enough versions have served."""
WRITE_EVERY_S = 0.1
VERSIONS = 3
CLIENTS = 6
STREAMS = 4
PAUSE_S = 0.02
"""Between two requests of one client: 300 of all in a second."""
PATIENCE_S = 120
LINES = 10
"""Of the document before what is wrong with it."""


@attrs.define(eq=False)
class Traffic:
    """Clients and a writer, and what all of them have seen."""

    port: int
    file: Path
    text: str
    ends_at: float
    has_refused: Callable[[], bool]
    """Whether the Router has refused a document."""
    newest: int = 0
    """Version of an answer that has arrived."""
    versions: set[int] = attrs.field(factory=set)
    answers: int = 0
    streams: int = 0

    @property
    def goes_on(self) -> bool:
        """Return whether more is to be seen."""
        is_short = len(self.versions) < VERSIONS or not self.has_refused()
        return is_short or trio.current_time() < self.ends_at

    async def run(self) -> None:
        """Go on until it is time to stop; anything unexpected fails."""
        with trio.fail_after(PATIENCE_S):
            async with trio.open_nursery() as clients:
                clients.start_soon(self._write)
                for _ in range(CLIENTS):
                    clients.start_soon(self._ask)
                for _ in range(STREAMS):
                    clients.start_soon(self._stream)

    async def _ask(self) -> None:
        with await connect(self.port) as client:
            mine = 0
            while self.goes_on:
                least = max(mine, self.newest)
                await client.send(post(chat()))
                answer = await client.answer()
                assert answer is not None
                assert answer.status == 200
                mine = int(answer.fields["x-vsr-config-version"])
                assert mine >= least
                self.newest = max(self.newest, mine)
                self.versions.add(mine)
                self.answers += 1
                await trio.sleep(PAUSE_S)

    async def _stream(self) -> None:
        while self.goes_on:
            with await connect(self.port) as client:
                await client.send(post(chat("a " * 60, stream=True)))
                answer = await client.answer()
                assert answer is not None
                assert answer.status == 200
                assert answer.body.endswith(b"data: [DONE]\n\n")
                self.streams += 1

    async def _write(self) -> None:
        number = 0
        while self.goes_on:
            number += 1
            changed = self.text.replace("[python]", f"[python, word{number}]")
            if number % 2:
                changed += f"wrong{number}: 1\n"
            new = trio.Path(self.file.with_suffix(".new"))
            await new.write_text(changed)
            await new.replace(self.file)
            await trio.sleep(WRITE_EVERY_S)


async def test_clients_do_not_notice_that_the_document_changes(
    nursery: trio.Nursery, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """No request fails, no version goes back, streams are whole, and every fault is told."""
    caplog.set_level(logging.INFO, "vsr.config")
    network = EpollNetwork()
    await nursery.start(network.run)
    model = await start_backend(nursery, network, Script(chunk_interval_s=0.02))
    file, port = tmp_path / "config.yaml", _free_port()
    text = document(port=port, small=model.port, large=model.port)
    assert text.count("\n") == LINES
    await trio.Path(file).write_text(text)
    opened = open_document(file)
    router = await Router.bind(
        Parts.default(network), opened.snapshot, AccessLog(_forget), version=opened.version
    )
    await nursery.start(run_until_cancelled, router)
    live = LiveConfiguration.of(opened, LocalInstallation(router, tmp_path))
    await nursery.start(live.run)

    def last_rejection() -> Attempt | None:
        return live.lifecycle.status.last_rejection

    ends_at = trio.current_time() + LASTS_S
    traffic = Traffic(port, file, text, ends_at, lambda: last_rejection() is not None)

    await traffic.run()

    nursery.cancel_scope.cancel()
    assert len(traffic.versions) >= VERSIONS
    assert traffic.newest <= live.lifecycle.last_version
    assert traffic.answers > 100
    assert traffic.streams >= STREAMS
    rejected = last_rejection()
    assert rejected is not None
    [reason] = rejected.reasons
    assert (reason.file, reason.line) == (str(file), LINES + 1)
    assert f"{file}:{LINES + 1}: wrong" in caplog.text


def _free_port() -> int:
    """Return a port that nobody listens on now."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


async def _forget(data: bytes) -> None:
    del data
    await trio.lowlevel.checkpoint()
