"""A Router whose graph lets its clients wait, and clients that note when they are told what."""

import json
from collections.abc import Sequence
from typing import Self

import attrs
import pytest
import trio

from tests.demo.raw_client import CHAT, chat_body
from tests.fakes.backend import start_backend
from tests.fakes.h2_client import Answer, H2Client, data_frames
from tests.fakes.router import RunningRouter, document_of, model_of, start_router
from vsr.demo.script import Script
from vsr.demo.server import DemoModel
from vsr.headers import HeaderLine
from vsr.http.framing import FramingError
from vsr.http.h1_client import ClientConnection, encode_request
from vsr.network.memory import MemoryConnection, MemoryNetwork
from vsr.network.port import ConnectionBroken

MESSAGES = b"/v1/messages"
STREAM = chat_body(model="auto", stream=True)
TAIL = "{id: last, type: call, model: beta, stream: tail}, {type: respond, from: $last}"
TWO_CALLS = f"{{id: first, type: call, model: alpha}}, {TAIL}"
KEEP_ALIVE = b": vsr keep-alive\n\n"
AFTER_2S = "{keep_alive_after: 2s}"
TOLD = "{progress: true}"
VERSIONS = pytest.mark.parametrize("version", ["http/1.1", "h2"])
ONE_CALL = "{id: first, type: call, model: alpha}, {type: respond, from: $first}"
REQUEST = encode_request(b"POST", CHAT, b"demo", [], len(STREAM)) + STREAM


def routing(stream: str, steps: str = TWO_CALLS, *, decision: str = "", limits: str = "") -> str:
    """Return the routing block of a graph for every request; `stream` is a mapping in YAML."""
    said = f", stream: {decision}" if decision else ""
    own = f"stream: {stream}, " if stream else ""
    bound = f"limits: {limits}, " if limits else ""
    return (
        f"{{graphs: {{tested: {{{bound}{own}steps: [{steps}]}}}}, decisions: [{{name: all, "
        f"modelRefs: [{{model: alpha}}], algorithm: {{type: graph, graph: tested{said}}}}}]}}"
    )


@attrs.define(eq=False)
class Scene:
    """The Router and the models that its graph calls."""

    router: RunningRouter
    alpha: DemoModel
    beta: DemoModel


async def start(
    nursery: trio.Nursery,
    text: str,
    alpha: Script | None = None,
    beta: Script | None = None,
    *,
    reliability: str = "",
) -> Scene:
    """Serve the routing block `text`; `reliability` is that of both models."""
    network = MemoryNetwork()
    first = await start_backend(nursery, network, alpha or Script())
    second = await start_backend(nursery, network, beta or Script())
    more = {"reliability": reliability} if reliability else {}
    models = (model_of(first.port, **more), model_of(second.port, "beta", **more))
    document = document_of(*models, listener="timeout: 300s", routing=text)
    return Scene(await start_router(nursery, network, document), first, second)


@attrs.define(eq=False)
class Heard:
    """What a client was told, piece by piece with the time since it asked."""

    status: int = 0
    lines: tuple[HeaderLine, ...] = ()
    head_s: float | None = None
    pieces: list[tuple[float, bytes]] = attrs.field(factory=list)
    is_whole: bool = False

    @property
    def body(self) -> bytes:
        """Return all of it."""
        return b"".join(piece for _, piece in self.pieces)

    @property
    def blocks(self) -> list[tuple[float, bytes]]:
        """Return the comments and events, each with the time at which it came."""
        found = []
        for at, piece in self.pieces:
            assert piece.endswith(b"\n\n")  # nothing is ever cut where it is sent
            found += [(at, block + b"\n\n") for block in piece.split(b"\n\n")[:-1]]
        return found

    @property
    def comments(self) -> list[tuple[float, bytes]]:
        """Return the comments."""
        return [(at, block) for at, block in self.blocks if block.startswith(b":")]

    @property
    def events(self) -> list[bytes]:
        """Return the events."""
        return [block for _, block in self.blocks if not block.startswith(b":")]

    @property
    def is_ordered(self) -> bool:
        """Return whether every comment stands before every event."""
        kinds = [block.startswith(b":") for _, block in self.blocks]
        return kinds == sorted(kinds, reverse=True)

    def line(self, name: bytes) -> bytes:
        """Return the value of a field, empty if absent."""
        return dict(self.lines).get(name, b"")


async def ask_h1(scene: Scene, body: bytes = STREAM, target: bytes = CHAT) -> Heard:
    """Ask on an HTTP/1.1 connection of its own."""
    connection = await scene.router.connect()
    heard = await hear(connection, body, target)
    connection.close()
    return heard


async def hear(
    connection: MemoryConnection,
    body: bytes = STREAM,
    target: bytes = CHAT,
    *,
    lines: Sequence[HeaderLine] = (),
) -> Heard:
    """Ask, and read the answer until it ends in whatever way."""
    heard, start_s, http = Heard(), trio.current_time(), ClientConnection()
    http.begin(is_head_request=False)
    await connection.send(encode_request(b"POST", target, b"demo", list(lines), len(body)) + body)
    while not http.is_complete:
        try:
            data = await connection.receive()
            http.feed(data) if data else http.feed_end()
        except (ConnectionBroken, FramingError):
            return heard
        now = trio.current_time() - start_s
        if http.head is not None and heard.head_s is None:
            heard.head_s = now
            heard.status, heard.lines = http.head.status, tuple(http.head.lines)
        if piece := http.take():
            heard.pieces.append((now, piece))
    heard.is_whole = True
    return heard


async def ask_h2(
    nursery: trio.Nursery, scene: Scene, body: bytes = STREAM, target: bytes = CHAT
) -> Heard:
    """Ask on an HTTP/2 connection of its own."""
    client = await H2Client(await scene.router.connect()).start(nursery)
    heard, start_s = Heard(), trio.current_time()
    lines = [(b"content-length", b"%d" % len(body))]
    head = client.open(lines, target=target)
    answer = client.streams[head.stream_id] = Answer(body=_Timed(heard, start_s))
    await client.send(head, *data_frames(head.stream_id, body, ends=True))
    await answer.done.wait()
    heard.status, heard.lines = answer.status, tuple(answer.lines)
    heard.is_whole = answer.is_whole
    client.connection.close()
    return heard


class _Timed(bytearray):
    """Notes what is added to it, and when."""

    def __init__(self, heard: Heard, start_s: float) -> None:
        super().__init__()
        self._heard, self._start_s = heard, start_s

    def __iadd__(self, piece: object, /) -> Self:
        assert isinstance(piece, bytes)
        if piece:
            self._heard.pieces.append((trio.current_time() - self._start_s, piece))
        return self


async def ask(
    version: str,
    nursery: trio.Nursery,
    scene: Scene,
    body: bytes = STREAM,
    target: bytes = CHAT,
) -> Heard:
    """Ask in one of the HTTP versions."""
    if version == "h2":
        return await ask_h2(nursery, scene, body, target)
    return await ask_h1(scene, body, target)


def error_of(heard: Heard) -> dict[str, object]:
    """Return the error of a stream whose only event it is."""
    [event] = heard.events
    error: dict[str, object] = json.loads(event.partition(b"data: ")[2])["error"]
    return error


def times(heard: Heard) -> list[float]:
    """Return when comments came, to the tenth of a second."""
    return [round(at, 1) for at, _ in heard.comments]
