"""The commands in processes of their own."""

import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import attrs
import trio

from tests.fakes.backend import BACKEND_HOST

_BIN = Path(sys.executable).parent
ROUTER = str(_BIN / "vllm-sr-router")
VLLM_SR = str(_BIN / "vllm-sr")
_SERVES = re.compile(r"serves on port (\d+)\n")
DRAINS = re.compile("draining\n")
START_S = 15.0
"""What a start may take on a machine that is busy with other things."""


@attrs.define(eq=False)
class Started:
    """A process that serves."""

    process: trio.Process
    stdout: Path
    port: int = 0
    stderr: str = ""
    _said: trio.Event = attrs.field(factory=trio.Event)

    def send(self, number: signal.Signals) -> None:
        """Send a signal."""
        self.process.send_signal(number)

    async def says(self, pattern: "re.Pattern[str]") -> "re.Match[str]":
        """Wait until what is written on standard error matches; return the match."""
        while (found := pattern.search(self.stderr)) is None:
            await self._said.wait()
        return found

    def log_lines(self) -> list[dict[str, object]]:
        """Return the access log so far."""
        return [json.loads(line) for line in self.stdout.read_text(encoding="utf-8").splitlines()]

    async def read(self) -> None:
        """Collect standard error to its end."""
        stderr = self.process.stderr
        assert stderr is not None
        async for data in stderr:
            self.stderr += data.decode()
            said, self._said = self._said, trio.Event()
            said.set()


async def start(nursery: trio.Nursery, command: Sequence[str], stdout: Path) -> Started:
    """Start a command that serves, its log in `stdout`; it is killed with `nursery`."""
    with stdout.open("wb") as log:
        run = partial(
            trio.run_process,
            command,
            stdout=log,
            stderr=subprocess.PIPE,
            check=False,
            deliver_cancel=_kill,
        )
        process: trio.Process = await nursery.start(run)
    started = Started(process, stdout)
    nursery.start_soon(started.read)
    with trio.fail_after(START_S):
        started.port = int((await started.says(_SERVES))[1])
    return started


async def run(command: Sequence[str]) -> "subprocess.CompletedProcess[bytes]":
    """Run a command that ends by itself."""
    with trio.fail_after(START_S):
        return await trio.run_process(
            command, capture_stdout=True, capture_stderr=True, check=False, deliver_cancel=_kill
        )


def free_port() -> int:
    """Return a port that was free just now: a document can't ask for any."""
    with socket.socket() as sock:
        sock.bind((BACKEND_HOST, 0))
        port: int = sock.getsockname()[1]
        return port


async def _kill(process: trio.Process) -> None:
    process.kill()
    await process.wait()
