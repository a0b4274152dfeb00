"""The curl commands of our pages, and what they would print."""

import shlex
from collections.abc import Iterator
from urllib.parse import urlsplit

import attrs
import trio

from tests.docs.markdown import blocks
from vsr.http.h1_client import ClientConnection, encode_request
from vsr.http.h1_server import encode_head
from vsr.network.memory import MemoryNetwork


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


def sessions(page: str) -> Iterator[tuple[str, str]]:
    """Return the command lines of a page's console blocks, each with the output shown."""
    for block in blocks("console"):
        if block.place.startswith(page):
            for session in block.text.removeprefix("$ ").split("\n$ "):
                line, _, shown = session.partition("\n")
                yield line, shown.strip("\n") + "\n"


def commands(page: str) -> list[Command]:
    """Return the curl commands of a page."""
    return [
        Command(shlex.split(line), shown)
        for line, shown in sessions(page)
        if line.startswith("curl")
    ]


async def run(command: Command, network: MemoryNetwork) -> str:
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


async def discard(data: bytes) -> None:
    """Take an access log's line and do nothing with it."""
    del data
    await trio.lowlevel.checkpoint()
