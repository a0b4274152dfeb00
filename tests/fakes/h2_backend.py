"""A backend that speaks HTTP/2 by the `h2` library and plays what a test says, call by call."""

import ssl
from collections.abc import Sequence
from contextlib import suppress
from enum import Enum, auto

import attrs
import h2.events
import trio
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.exceptions import ProtocolError
from h2.settings import SettingCodes

from vsr.headers import HeaderLine
from vsr.network.port import Connection, ConnectionBroken, Listener, Network, NetworkError
from vsr.network.tls import start_server_tls


class Act(Enum):
    """What a backend does besides sending and waiting."""

    HANG = auto()
    """Says nothing more on the stream."""
    CLOSE = auto()
    """Closes the connection."""
    ABORT = auto()
    """Closes it with a reset."""
    END = auto()
    """Ends the response, in a play that goes on."""
    NO_END = auto()
    """Leaves the stream open behind the play."""


@attrs.frozen
class Head:
    """A response head; status 1xx for an informational one."""

    status: int = 200
    lines: Sequence[HeaderLine] = ((b"content-type", b"application/json"),)


@attrs.frozen
class Reset:
    """Ends the stream."""

    code: int = ErrorCodes.INTERNAL_ERROR


@attrs.frozen
class GoAway:
    """Takes no more streams; `processed` says whether this one is still served."""

    processed: bool = True
    code: int = ErrorCodes.NO_ERROR


@attrs.frozen
class Raw:
    """Bytes of any kind."""

    data: bytes


Step = bytes | float | Head | Reset | GoAway | Raw | Act
Play = Sequence[Step]
_FIRST_FINAL = 200
OK: Play = (Head(), b"{}")
REFUSED: Play = (Reset(ErrorCodes.REFUSED_STREAM),)
EVENT = b'data: {"id":"c","choices":[{"index":0,"delta":{"content":"more"}}]}\n\n'
LAST = (
    b'data: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
    b"data: [DONE]\n\n"
)
STREAM_HEAD = Head(200, ((b"content-type", b"text/event-stream"),))


def streaming(*gaps_s: float) -> Play:
    """Return a stream with an event at once and one behind each gap."""
    later: list[Step] = [step for gap_s in gaps_s for step in (gap_s, EVENT)]
    return (STREAM_HEAD, EVENT, *later, LAST)


@attrs.define(eq=False)
class Asked:
    """One call as the backend got it."""

    connection: int
    """Counted from 0."""
    stream_id: int
    at: float
    fields: list[HeaderLine]
    body: bytearray = attrs.field(factory=bytearray)
    is_whole: bool = False
    reset: int | None = None
    """Error code by which the other side gave up."""
    reset_at: float | None = None
    done: bool = False
    """Whether the play is over."""

    def field(self, name: bytes) -> bytes:
        """Return the value of a field, empty if absent."""
        return next((value for key, value in self.fields if key == name), b"")


@attrs.define(eq=False)
class H2Backend:
    """Listens on a network; `start` it in a nursery.

    A play begins with the request's head if `is_early`, else when it is whole; the last is
    played for ever.
    """

    network: Network
    plays: Sequence[Play] = (OK,)
    settings: dict[int, int] = attrs.field(factory=dict)
    tls: ssl.SSLContext | None = None
    is_early: bool = False
    gives_credit: bool = True
    settings_after_s: float = 0.0
    health: Play = OK
    calls: list[Asked] = attrs.field(factory=list)
    checks: list[Asked] = attrs.field(factory=list)
    sessions: list["Session"] = attrs.field(factory=list)
    gone_at: list[float] = attrs.field(factory=list)
    """When the other side left, for each connection that it did leave."""
    port: int = 0

    async def start(self, nursery: trio.Nursery) -> "H2Backend":
        """Listen, and serve until `nursery` is cancelled."""
        listener = await self.network.listen("127.0.0.1", 0)
        self.port = listener.port
        nursery.start_soon(self._accept, nursery, listener)
        return self

    @property
    def open_sessions(self) -> int:
        """Return how many connections are open."""
        return sum(not session.is_closed for session in self.sessions)

    async def _accept(self, nursery: trio.Nursery, listener: Listener) -> None:
        try:
            while True:
                nursery.start_soon(self._serve, await listener.accept())
        finally:
            listener.close()

    async def _serve(self, accepted: Connection) -> None:
        try:
            await self._speak(accepted)
        except NetworkError:
            pass  # no handshake came of it
        finally:
            accepted.close()

    async def _speak(self, connection: Connection) -> None:
        if self.tls is not None:
            connection = await start_server_tls(connection, self.tls)
        session = Session(self, connection, len(self.sessions))
        self.sessions.append(session)
        connection.on_gone = session.note_gone
        with suppress(ConnectionBroken):
            await session.serve()
        session.close()

    def play_for(self, asked: Asked) -> Play:
        """Take in a call and return what is played for it."""
        if asked.field(b":path") == b"/health":
            self.checks.append(asked)
            return self.health
        self.calls.append(asked)
        return self.plays[min(len(self.calls), len(self.plays)) - 1]


class Session:
    """One connection to the backend."""

    def __init__(self, backend: H2Backend, connection: Connection, number: int) -> None:
        self.backend = backend
        self.connection = connection
        self.number = number
        self.is_closed = False
        self.asked: dict[int, Asked] = {}
        self.most_open = 0
        self.pings = 0
        self._plays: dict[int, Play] = {}
        self._begun: set[int] = set()
        self._changed = trio.Event()
        self._sending = trio.Lock()
        self.h2 = H2Connection(
            H2Configuration(
                client_side=False,
                header_encoding=None,
                normalize_outbound_headers=False,
                validate_outbound_headers=False,
            )
        )

    @property
    def open_streams(self) -> int:
        """Return how many streams are not closed."""
        return sum(not stream.closed for stream in self.h2.streams.values())

    async def serve(self) -> None:
        """Serve until the connection ends."""
        await trio.sleep(self.backend.settings_after_s)
        # The library's own limit is set aside: a test tells by `most_open` whether it was kept.
        self.h2.initiate_connection()
        self.h2.local_settings = type(self.h2.local_settings)(client=False)
        if self.backend.settings:
            self.h2.update_settings(dict(self.backend.settings))
        await self.flush()
        async with trio.open_nursery() as tasks:
            with suppress(ConnectionBroken):
                await self._read(tasks)
            tasks.cancel_scope.cancel()

    async def _read(self, tasks: trio.Nursery) -> None:
        while data := await self.connection.receive():
            for event in self.h2.receive_data(data):
                self._on_event(event, tasks)
            await self.flush()
            self._tell()

    async def update(self, **settings: int) -> None:
        """Change settings, by their names in lower case."""
        self.h2.update_settings(
            {SettingCodes[name.upper()]: value for name, value in settings.items()}
        )
        await self.flush()

    async def flush(self) -> None:
        """Send what the library has put out."""
        async with self._sending:
            if data := self.h2.data_to_send():
                with suppress(ConnectionBroken):
                    await self.connection.send(data)

    def close(self, *, abort: bool = False) -> None:
        """Close the connection."""
        self.is_closed = True
        if abort:
            self.connection.abort()
        else:
            self.connection.close()

    def note_gone(self) -> None:
        """Note that the other side has left."""
        self.is_closed = True
        self.backend.gone_at.append(trio.current_time())

    def _tell(self) -> None:
        self._changed.set()
        self._changed = trio.Event()

    def _on_event(self, event: h2.events.Event, tasks: trio.Nursery) -> None:
        match event:
            case h2.events.RequestReceived():
                fields = [(bytes(name), bytes(value)) for name, value in event.headers]
                asked = Asked(self.number, event.stream_id, trio.current_time(), fields)
                self.asked[event.stream_id] = asked
                self.most_open = max(self.most_open, self.open_streams)
                self._plays[event.stream_id] = self.backend.play_for(asked)
                if self.backend.is_early:
                    self._begin(event.stream_id, tasks)
            case h2.events.DataReceived():
                self.asked[event.stream_id].body += event.data
                if self.backend.gives_credit and event.flow_controlled_length:
                    self._credit(event.stream_id, event.flow_controlled_length)
            case h2.events.StreamEnded():
                self.asked[event.stream_id].is_whole = True
                self._begin(event.stream_id, tasks)
            case h2.events.StreamReset():
                asked = self.asked[event.stream_id]
                asked.reset, asked.reset_at = int(event.error_code or 0), trio.current_time()
            case h2.events.PingReceived():
                self.pings += 1
            case _:
                pass

    def _credit(self, stream_id: int, size: int) -> None:
        with suppress(ProtocolError):
            self.h2.acknowledge_received_data(size, stream_id)

    def _begin(self, stream_id: int, tasks: trio.Nursery) -> None:
        if stream_id not in self._begun:
            self._begun.add(stream_id)
            tasks.start_soon(self._play, self.asked[stream_id], self._plays[stream_id])

    async def _play(self, asked: Asked, play: Play) -> None:
        with suppress(ProtocolError, ConnectionBroken):
            for at, step in enumerate(play):
                if asked.reset is not None or self.is_closed:
                    break
                if not await self._step(asked, step, is_last=at == len(play) - 1):
                    break
        asked.done = True
        await self.flush()

    async def _step(self, asked: Asked, step: Step, *, is_last: bool) -> bool:
        """Do one step; return whether the play goes on."""
        match step:
            case bytes():
                await self._send(asked, step, is_last=is_last)
            case float() | int():
                await trio.sleep(step)
            case GoAway():
                last = asked.stream_id if step.processed else asked.stream_id - 2
                await self.say_goaway(last, step.code)
            case Raw():
                await self.flush()
                await self.connection.send(step.data)
            case Act.END:
                self.h2.end_stream(asked.stream_id)
            case Act():
                return await self._act(step)
            case _:
                self._put_out(asked, step, is_last=is_last)
        await self.flush()
        return True

    def _put_out(self, asked: Asked, step: Head | Reset, *, is_last: bool) -> None:
        if isinstance(step, Reset):
            self.h2.reset_stream(asked.stream_id, step.code)
        else:
            ends = is_last and step.status >= _FIRST_FINAL
            self.h2.send_headers(asked.stream_id, _fields(step), end_stream=ends)

    async def _act(self, act: Act) -> bool:
        if act is Act.HANG:
            await trio.sleep_forever()
        if act is not Act.NO_END:
            await self.flush()
            self.close(abort=act is Act.ABORT)
        return False

    async def say_goaway(self, last_stream_id: int, code: int = 0) -> None:
        """Take no more streams; the library's own would end the connection."""
        await self.flush()
        body = max(last_stream_id, 0).to_bytes(4, "big") + int(code).to_bytes(4, "big")
        async with self._sending:
            await self.connection.send(b"\0\0\x08\x07\0\0\0\0\0" + body)

    async def _send(self, asked: Asked, data: bytes, *, is_last: bool) -> None:
        left = data
        while left:
            room = min(self.h2.local_flow_control_window(asked.stream_id), 16_384)
            if room <= 0:
                await self._changed.wait()
                continue
            piece, left = left[:room], left[room:]
            self.h2.send_data(asked.stream_id, piece, end_stream=is_last and not left)
            await self.flush()


def _fields(head: Head) -> list[HeaderLine]:
    return [(b":status", b"%d" % head.status), *head.lines]


async def start_h2_backend(
    nursery: trio.Nursery, network: Network, *plays: Play, **members: object
) -> H2Backend:
    """Start a backend with these plays; `members` are further ones of it."""
    backend = H2Backend(network, plays or (OK,))
    for name, value in members.items():
        setattr(backend, name, value)
    return await backend.start(nursery)


def model_over_h2(*ports: int, name: str = "alpha", reliability: str = "") -> str:
    """Return a model with such backends as YAML."""
    refs = ", ".join(f"{{endpoint: '127.0.0.1:{port}', http_version: '2'}}" for port in ports)
    return f"{{name: {name}, reliability: {{{reliability}}}, backend_refs: [{refs}]}}"
