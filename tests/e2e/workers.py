"""A Router with several workers from outside: its processes, and clients that watch versions."""

import os
import re
import signal
from contextlib import suppress
from pathlib import Path

import attrs

from tests.e2e.process import ROUTER, Started
from tests.e2e.standalone import until
from tests.e2e.wire import Answer, BrokenAnswer, RawClient, chat, connect, post

PATIENCE_S = 60
WORKERS = 2
_SERVES = re.compile(r"worker (\d+) \(pid (\d+)\) serves version (\d+)")


def command(config: Path, *more: str) -> list[str]:
    """Return what starts workers."""
    fixed = ["--config", str(config), "--gateway", "standalone", "--workers", str(WORKERS)]
    return [ROUTER, *fixed, *(more or ("--metrics-port", "0"))]


def pids(router: Started) -> list[int]:
    """Return the processes of all workers that ever served."""
    return [int(found[2]) for found in _SERVES.finditer(router.stderr)]


def end(pid: int, number: int = signal.SIGKILL) -> None:
    """Send a signal to a process that may be gone."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def is_there(pid: int) -> bool:
    """Return whether a process runs."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def change(config: Path, times: int) -> None:
    """Make another document of it, by renaming one over it."""
    other = config.with_suffix(".new")
    text = config.read_text(encoding="utf-8").partition("# change")[0]
    other.write_text(f"{text}# change {times}\n", encoding="utf-8")
    other.replace(config)


def rewrite(config: Path, old: str, new: str) -> None:
    """Edit a document in place."""
    text = config.read_text(encoding="utf-8")
    assert old in text
    config.write_text(text.replace(old, new), encoding="utf-8")


@attrs.define
class Load:
    """Clients that ask again and again, and what they have seen."""

    port: int
    seen: int = 0
    """The newest version that any answer named."""
    answers: int = 0
    went_back: list[tuple[int, int]] = attrs.field(factory=list)
    broken: list[str] = attrs.field(factory=list)
    statuses: set[int] = attrs.field(factory=set)

    async def more(self, count: int) -> None:
        """Wait until so many more answers have come."""
        wanted = self.answers + count
        await until(lambda: self.answers >= wanted, PATIENCE_S)

    async def keep_asking(self) -> None:
        """Ask on one connection; connect anew when it ends."""
        while True:
            try:
                with await connect(self.port) as client:
                    while await self._ask(client):
                        pass
            except (BrokenAnswer, OSError) as error:
                self.broken.append(repr(error))

    async def connect_each_time(self) -> None:
        """Ask on a new connection each time."""
        while True:
            try:
                with await connect(self.port) as client:
                    await self._ask(client)
            except (BrokenAnswer, OSError) as error:
                self.broken.append(repr(error))

    async def _ask(self, client: RawClient) -> bool:
        """Return whether the connection goes on."""
        known = self.seen
        await client.send(post(chat()))
        answer = await client.answer()
        if answer is None:
            self.broken.append("no answer")
            return False
        self.answers += 1
        self.statuses.add(answer.status)
        version = int(answer.fields.get("x-vsr-config-version", 0))
        if version < known:
            self.went_back.append((known, version))
        self.seen = max(self.seen, version)
        return answer.fields.get("connection") != "close"


async def ask(port: int) -> Answer | None:
    """Send one request on a connection of its own."""
    with await connect(port) as client:
        await client.send(post(chat("python")))
        return await client.answer()
