"""A Router that passes uploads on, with a client and a backend of either HTTP version."""

from collections.abc import Callable, Sequence
from typing import Protocol

import attrs
import trio
import trio.testing

from tests.demo.raw_client import read_answer
from tests.engine.stepped_backend import Act
from tests.fakes.h2_backend import Act as H2Act
from tests.fakes.h2_backend import Asked, H2Backend, Head
from tests.fakes.h2_backend import Play as H2Play
from tests.fakes.h2_client import H2Client, data_frames, reset
from tests.fakes.router import RunningRouter, clusters_of, document_of, start_router
from tests.gateway.upload_backend import Received, Steps, UploadBackend
from vsr.headers import HeaderLine
from vsr.network.memory import MemoryNetwork
from vsr.network.port import Connection
from vsr.resources.tracing import Tracing
from vsr.telemetry.spans import SpanSink
from vsr.upstream.policy.balancer import RoundRobin
from vsr.upstream.policy.host import Host

TARGET = b"/v1/files"
REPLAY_BYTES = 1000
"""A body up to this is collected, beyond it is passed on as it comes."""
PIECE = bytes(range(250)) * 4
"""As much as is collected."""
IDLE_S = 20
"""What a client, and a backend, may be silent for."""
PAIRS = [(1, 1), (1, 2), (2, 1), (2, 2)]
"""HTTP versions of client and backend."""
_NAMES = {1: "1.1", 2: "2"}
NOTHING = {"leases": 0, "in use": 0, "active": 0, "slots": 0, "hosts": 0}


@attrs.frozen
class Answered:
    """What a client was told."""

    status: int
    body: bytes
    is_whole: bool
    closes: bool
    """Whether the connection, or the stream that the client still sends on, is ended."""


class Uploader(Protocol):
    """A client with one request, whose body it sends as a test says."""

    async def begin(
        self, length: int | None, lines: Sequence[HeaderLine] = (), target: bytes = TARGET
    ) -> None:
        """Send the head."""
        ...

    async def put(self, data: bytes) -> None:
        """Send a piece."""
        ...

    async def finish(self) -> None:
        """Send the end, if it is not known by the length."""
        ...

    async def spoil(self) -> None:
        """Send what breaks the body's framing."""
        ...

    def leave(self) -> None:
        """Leave."""
        ...

    async def answer(self) -> Answered:
        """Wait for the end of the answer."""
        ...

    def informational(self) -> list[int]:
        """Return the informational heads that came, once `answer` has returned."""
        ...


@attrs.define(eq=False)
class H1Uploader:
    """Speaks HTTP/1.1."""

    connection: Connection
    _is_chunked: bool = False
    _raw: bytes = b""

    async def begin(
        self, length: int | None, lines: Sequence[HeaderLine] = (), target: bytes = TARGET
    ) -> None:
        """Send the head."""
        self._is_chunked = length is None
        framing = (
            b"transfer-encoding: chunked" if length is None else b"content-length: %d" % length
        )
        shown = b"".join(b"%b: %b\r\n" % line for line in lines)
        await self.connection.send(
            b"POST %b HTTP/1.1\r\nhost: r\r\n%b%b\r\n\r\n" % (target, shown, framing)
        )

    async def put(self, data: bytes) -> None:
        """Send a piece."""
        await self.connection.send(
            b"%x\r\n%b\r\n" % (len(data), data) if self._is_chunked else data
        )

    async def finish(self) -> None:
        """Send the last chunk."""
        if self._is_chunked:
            await self.connection.send(b"0\r\n\r\n")

    async def spoil(self) -> None:
        """Send a chunk that is none."""
        await self.connection.send(b"zz\r\n")

    def leave(self) -> None:
        """Close."""
        self.connection.close()

    async def answer(self) -> Answered:
        """Read the answer."""
        got = await read_answer(self.connection)
        self._raw = got.raw
        return Answered(got.status, got.body, got.end == "whole", not got.is_reusable)

    def informational(self) -> list[int]:
        """Return what stood before the answer."""
        return [100] * self._raw.count(b"HTTP/1.1 100 ")


@attrs.define(eq=False)
class H2Uploader:
    """Speaks HTTP/2."""

    client: H2Client
    settles_s: float = 3.0
    """How long behind an answer something may be said of the client's own half."""
    _stream_id: int = 0
    _to_come: int | None = None

    async def begin(
        self, length: int | None, lines: Sequence[HeaderLine] = (), target: bytes = TARGET
    ) -> None:
        """Send the head."""
        declared = [] if length is None else [(b"content-length", b"%d" % length)]
        head = self.client.open([*declared, *lines], target=target)
        self._stream_id, self._to_come = head.stream_id, length
        await self.client.send(head)

    async def put(self, data: bytes) -> None:
        """Send a piece, and the end with the last one of a declared length."""
        if self._to_come is not None:
            self._to_come -= len(data)
        frames = data_frames(self._stream_id, data, ends=self._to_come == 0)
        await self.client.send(*frames)

    async def finish(self) -> None:
        """Send the end."""
        if self._to_come is None:
            frame = data_frames(self._stream_id, b"x", ends=True)[0]
            frame.data = b""
            await self.client.send(frame)

    async def spoil(self) -> None:
        """Send trailers that are none."""
        frame = self.client.open_raw([(b":path", b"/")], ends=True)
        frame.stream_id = self._stream_id
        await self.client.send(frame)

    def leave(self) -> None:
        """Give the stream up, not the connection."""
        frame = reset(self._stream_id).serialize()
        assert self.client.connection.try_send(frame) == len(frame)

    async def answer(self) -> Answered:
        """Wait for the end of the stream, and for what ends the client's own half."""
        got = self.client.streams[self._stream_id]
        await got.done.wait()
        await trio.sleep(self.settles_s)
        return Answered(got.status, bytes(got.body), got.is_whole, got.reset is not None)

    @property
    def reset_code(self) -> int | None:
        """Return how the stream was reset."""
        return self.client.streams[self._stream_id].reset

    def informational(self) -> list[int]:
        """Return what stood before the answer."""
        return self.client.streams[self._stream_id].informational


Backend = UploadBackend | H2Backend


@attrs.define(eq=False)
class Scene:
    """A Router, the backends of its one model, and whoever uploads."""

    nursery: trio.Nursery
    router: RunningRouter
    backends: list[Backend]

    @property
    def backend(self) -> Backend:
        """Return the first backend."""
        return self.backends[0]

    @property
    def calls(self) -> list[Received | Asked]:
        """Return what backends have got, in no order."""
        found: list[Received | Asked] = []
        for each in self.backends:
            found += each.seen if isinstance(each, UploadBackend) else each.calls
        return found

    @property
    def body(self) -> bytes:
        """Return the body of the one call, as far as it came."""
        [call] = self.calls
        return bytes(call.body)

    def left_at(self) -> float | None:
        """Return when the one call was given up, None if it was not."""
        [call] = self.calls
        return call.left_at if isinstance(call, Received) else call.reset_at

    @property
    def hosts(self) -> Sequence[Host]:
        """Return the cluster's endpoints."""
        return next(iter(clusters_of(self.router.generation))).state.hosts

    async def client(self, version: int) -> Uploader:
        """Connect."""
        connection = await self.router.connect()
        if version == 1:
            return H1Uploader(connection)
        return H2Uploader(await H2Client(connection).start(self.nursery))

    async def held(self) -> dict[str, int]:
        """Return what calls hold, once nothing moves."""
        await trio.testing.wait_all_tasks_blocked()
        leases, in_use = await self.router.held()
        state = next(iter(clusters_of(self.router.generation))).state
        return {
            "leases": leases,
            "in use": in_use,
            "active": state.gate.breaker.active + state.gate.breaker.waiting,
            "slots": state.slots.taken,
            "hosts": sum(host.active for host in state.hosts),
        }

    async def line(self) -> dict[str, object]:
        """Return the one line of the log."""
        [line] = await self.router.log()
        return line


async def start_scene(
    nursery: trio.Nursery,
    *versions: int,
    reliability: str = "",
    listener: str = f"timeout: {IDLE_S}s",
    replay_bytes: int = REPLAY_BYTES,
    set_up: Callable[[Backend], None] = lambda _: None,
    more: str = "",
    open_spans: Callable[[Tracing], SpanSink] | None = None,
) -> Scene:
    """Start a Router over a backend for each of these versions.

    Args:
        nursery: everything lives in it.
        versions: of HTTP.
        reliability: further members, as the inside of a YAML mapping.
        listener: its members.
        replay_bytes: of the model.
        set_up: is shown every backend before it starts.
        more: further lines of the document.
        open_spans: as of `start_router`.
    """
    network = MemoryNetwork()
    backends: list[Backend] = []
    refs = []
    for number, version in enumerate(versions):
        backend: Backend = (
            UploadBackend(network) if version == 1 else H2Backend(network, ((Head(), b"{}"),))
        )
        set_up(backend)
        await backend.start(nursery)
        backends.append(backend)
        refs.append(
            f"{{endpoint: 'b{number}.test:{backend.port}', http_version: '{_NAMES[version]}'}}"
        )
    extra = f", {reliability}" if reliability else ""
    model = (
        f"{{name: alpha, reliability: {{replay_bytes: {replay_bytes}{extra}}}, "
        f"backend_refs: [{', '.join(refs)}]}}"
    )
    document = document_of(model, listener=listener) + "\n" + more
    router = await start_router(nursery, network, document, open_spans=open_spans)
    scene = Scene(nursery, router, backends)
    balancer = next(iter(clusters_of(router.generation))).state.rotation._balancer
    if isinstance(balancer, RoundRobin):
        balancer._next = 0  # the first one's turn
    return scene


def plays(*, early: Steps = (), late: Steps | None = None, h2: H2Play) -> Callable[[Backend], None]:
    """Return what sets backends up to play this: HTTP/1.1 ones the steps, others a play.

    A play stands for both: `H2Backend.is_early` if there is something early.
    """

    def set_up(backend: Backend) -> None:
        if isinstance(backend, UploadBackend):
            backend.early = early
            if late is not None:
                backend.late = late
        else:
            backend.plays, backend.is_early = (h2,), bool(early)

    return set_up


SILENT = plays(late=(Act.HANG,), h2=(H2Act.HANG,))
