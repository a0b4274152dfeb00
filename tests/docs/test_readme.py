"""The README's session with the demo: each command gives the output shown."""

import re
import shlex
from collections.abc import Iterator
from urllib.parse import urlsplit

import attrs
import pytest
import trio
import trio.testing

from tests.docs.markdown import ROOT, blocks
from vsr.compose import Parts, Router
from vsr.config.report import Report
from vsr.config.source import check_bytes
from vsr.demo.document import serve_demo_models
from vsr.http.h1_client import ClientConnection, encode_request
from vsr.http.h1_server import encode_head
from vsr.network.memory import MemoryNetwork
from vsr.telemetry.access_log import AccessLog

PORT = 8899
ELISION = "...\n"
_LATENCY = re.compile(r"(?<=x-vsr-routing-latency-ms: )[0-9.]+")


@attrs.frozen
class Command:
    """One curl command and what the page shows as its output."""

    words: list[str]
    shown: str

    @property
    def shows_head_only(self) -> bool:
        """Return whether the command prints the head in place of the body."""
        return "-D" in self.words

    @property
    def url(self) -> str:
        """Return the one word that is a URL."""
        return next(word for word in self.words if word.startswith("localhost:"))

    @property
    def data(self) -> bytes:
        """Return the request body."""
        return self.words[self.words.index("-d") + 1].encode()


def _commands() -> Iterator[Command]:
    for block in blocks("console"):
        if block.place.startswith("README.md"):
            for session in block.text.split("$ ")[1:]:
                line, _, shown = session.partition("\n")
                if line.startswith("curl"):
                    yield Command(shlex.split(line), shown.strip("\n") + "\n")


COMMANDS = list(_commands())


def test_readme_shows_three_curl_lines_and_a_document_of_ten_lines() -> None:
    """The page keeps what it promises, and the test below has something to run."""
    documents = [block for block in blocks("yaml") if block.place.startswith("README.md")]

    assert len(COMMANDS) == 3
    assert [block.text.count("\n") for block in documents] == [10]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.data.decode()[-30:])
async def test_curl_line_prints_what_is_shown(
    command: Command, autojump_clock: trio.testing.MockClock
) -> None:
    """A reader who types a line sees the page; only the latency is a reading of the clock."""
    del autojump_clock
    network = MemoryNetwork()
    async with trio.open_nursery() as nursery:
        await nursery.start(network.run)
        document = await nursery.start(serve_demo_models, network, "127.0.0.1", PORT)
        snapshot = check_bytes(document.encode(), {}, Report("demo")).snapshot
        router = await Router.bind(Parts.default(network), snapshot, AccessLog(_discard))
        await nursery.start(router.run)

        printed = await _run(command, network)

        nursery.cancel_scope.cancel()
    wanted = [re.escape(_LATENCY.sub("0", part)) for part in command.shown.split(ELISION)]
    assert re.fullmatch("(?s:.*)".join(wanted), _LATENCY.sub("0", printed).strip("\n") + "\n")


async def _run(command: Command, network: MemoryNetwork) -> str:
    """Do what curl does and return what it prints."""
    target = urlsplit(f"//{command.url}")
    connection = await network.connect(target.hostname or "", target.port or 80)
    http = ClientConnection()
    http.begin(is_head_request=False)
    head = encode_request(
        b"POST", target.path.encode(), target.netloc.encode(), [], len(command.data)
    )
    await connection.send(head + command.data)
    printed = b""
    while not http.is_complete:
        http.feed(await connection.receive())
        printed += http.take()
    assert http.head is not None
    if command.shows_head_only:
        printed = encode_head(http.head.status, http.head.lines)
    return printed.decode().replace("\r\n", "\n")


async def _discard(data: bytes) -> None:
    del data
    await trio.lowlevel.checkpoint()


def test_readme_names_make_targets_that_exist() -> None:
    """What the page says to run is there."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")

    targets = set(re.findall(r"make ([a-z-]+)", text))

    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert targets
    assert [target for target in targets if f"\n{target}:" not in makefile] == []
