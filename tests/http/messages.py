"""HTTP/1.1 messages for tests: how they look on the wire and what must come out of a parser."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

import attrs
from hypothesis import strategies as st

from vsr.http.framing import FramingError, RequestHead
from vsr.http.h1_client import ClientConnection
from vsr.http.h1_server import End, ServerConnection

LINES = (b"X-Plain: one", b"x-empty:", b"X-Text: caf\xc3\xa9", b"X-Tab:\ta\tb \t", b"X-Two: 1")


@attrs.frozen
class Seen:
    """One request as it came out: head members and the joined body."""

    method: bytes
    target: bytes
    lines: tuple[tuple[bytes, bytes], ...]
    length: int | None
    expects_continue: bool
    body: bytes = b""
    is_ended: bool = False


@attrs.frozen
class WireMessage:
    """Bytes of one message and what they mean."""

    raw: bytes
    seen: Seen


@attrs.frozen
class Answer:
    """A response as it came out."""

    status: int
    length: int | None
    body: bytes
    is_complete: bool
    is_reusable: bool


@attrs.frozen
class WireAnswer:
    """Bytes of a response and what they mean; `ends_at_close` needs the end of the stream."""

    raw: bytes
    answer: Answer
    is_head_request: bool = False
    ends_at_close: bool = False


def cut(raw: bytes, at: Iterable[int]) -> list[bytes]:
    """Return `raw` in pieces, cut at the given positions."""
    places = sorted({0, len(raw), *(place % (len(raw) + 1) for place in at)})
    return [raw[start:end] for start, end in pairwise(places)]


def each_byte(raw: bytes) -> list[bytes]:
    """Return `raw` one byte at a time."""
    return [raw[index : index + 1] for index in range(len(raw))]


def serve(pieces: Iterable[bytes]) -> tuple[list[Seen], FramingError | None]:
    """Feed a server connection; return what it saw and the fault at the end, if any."""
    connection = ServerConnection()
    seen: list[Seen] = []
    fault: FramingError | None = None
    for piece in pieces:
        connection.feed(piece)
        while (event := connection.next_event()) is not None:
            assert fault is None, "nothing may come after a fault"
            if isinstance(event, FramingError):
                fault = event
            else:
                _add(seen, event)
    return seen, fault


def receive(
    pieces: Iterable[bytes], *, is_head_request: bool = False, ends_at_close: bool = False
) -> Answer:
    """Feed a client connection one response and return what came out."""
    connection = ClientConnection()
    return exchange(
        connection, pieces, is_head_request=is_head_request, ends_at_close=ends_at_close
    )


def exchange(
    connection: ClientConnection,
    pieces: Iterable[bytes],
    *,
    is_head_request: bool = False,
    ends_at_close: bool = False,
) -> Answer:
    """Let `connection` carry one request and return its response."""
    connection.begin(is_head_request=is_head_request)
    body = b""
    for piece in pieces:
        connection.feed(piece)
        body += connection.take()
    if ends_at_close:
        connection.feed_end()
    head = connection.head
    assert head is not None
    return Answer(head.status, head.length, body, connection.is_complete, connection.is_reusable)


def _add(seen: list[Seen], event: RequestHead | bytes | End) -> None:
    if isinstance(event, RequestHead):
        assert not seen or seen[-1].is_ended, "a head inside another request"
        seen.append(
            Seen(
                event.method,
                event.target,
                tuple(event.lines),
                event.length,
                event.expects_continue,
            )
        )
        return
    assert not seen[-1].is_ended, "body behind the end"
    if isinstance(event, End):
        seen[-1] = attrs.evolve(seen[-1], is_ended=True)
    else:
        assert event, "an empty piece of body"
        seen[-1] = attrs.evolve(seen[-1], body=seen[-1].body + event)


def parse_line(line: bytes) -> tuple[bytes, bytes]:
    """Return a field line as name and value must come out."""
    name, _, value = line.partition(b":")
    return name.lower(), value.strip(b" \t")


def encode_chunks(pieces: Sequence[tuple[bytes, bytes]], trailers: Sequence[bytes]) -> bytes:
    """Return a chunked body from pairs of data and extension."""
    chunks = b"".join(
        b"%X%b\r\n%b\r\n" % (len(data), extension, data) for data, extension in pieces
    )
    return chunks + b"0\r\n" + b"".join(line + b"\r\n" for line in trailers) + b"\r\n"


_data = st.binary(min_size=1, max_size=40) | st.sampled_from(
    [b"\r\n", b"0\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"\r\n\r\n", "日本語".encode()]
)
_extensions = st.sampled_from([b"", b"", b";a", b";a=b", b';a="b;c \\" d"', b";a;b=2"])
_chunked = st.tuples(
    st.lists(st.tuples(_data, _extensions), max_size=5),
    st.lists(st.sampled_from([b"X-Sum: 1", b"Digest: abc", b"Host: elsewhere"]), max_size=2),
)
_fields = st.lists(st.sampled_from(LINES), max_size=4)


@st.composite
def requests(draw: st.DrawFn) -> WireMessage:
    """Draw one valid request that keeps its connection."""
    method = draw(st.sampled_from([b"GET", b"POST", b"PUT", b"DELETE", b"OPTIONS", b"HEAD"]))
    target = draw(st.sampled_from([b"/", b"/v1/chat/completions?a=b%20c", b"/" + b"p" * 200]))
    lines = [b"Host: router.example:8899", *draw(_fields)]
    if draw(st.booleans()):
        lines += [b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c"]
    expects = draw(st.booleans())
    if expects:
        lines.append(b"Expect: 100-Continue")
    length: int | None = 0
    body = wire_body = b""
    kind = draw(st.sampled_from(["none", "length", "chunked"]))
    if kind == "length":
        body = wire_body = draw(_data | st.just(b""))
        length = len(body)
        lines.append(b"Content-Length: %d" % length)
    elif kind == "chunked":
        pieces, trailers = draw(_chunked)
        length, body = None, b"".join(data for data, _ in pieces)
        wire_body = encode_chunks(pieces, trailers)
        lines.append(b"Transfer-Encoding: Chunked")
    lines = draw(st.permutations(lines))
    raw = b"\r\n".join([method + b" " + target + b" HTTP/1.1", *lines, b"", wire_body])
    fields = tuple(parse_line(line) for line in lines)
    return WireMessage(raw, Seen(method, target, fields, length, expects, body, is_ended=True))


_informational = st.lists(
    st.sampled_from(
        [b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Hints\r\nLink: </a>\r\n\r\n"]
    ),
    max_size=2,
).map(b"".join)


@attrs.define
class _Body:
    """How one kind of response body is framed: further field lines and bytes on the wire."""

    lines: list[bytes]
    length: int | None
    body: bytes = b""
    wire: bytes = b""


@st.composite
def _bodies(draw: st.DrawFn, kind: str) -> _Body:
    if kind == "chunked":
        pieces, trailers = draw(_chunked)
        body = b"".join(data for data, _ in pieces)
        return _Body([b"Transfer-Encoding: chunked"], None, body, encode_chunks(pieces, trailers))
    if kind == "head":
        return _Body([b"Content-Length: 1234"], 0)
    if kind == "bodiless":
        return _Body([], 0)
    body = draw(_data | st.just(b""))
    if kind == "close":
        return _Body([], None, body, body)
    return _Body([b"Content-Length: %d" % len(body)], len(body), body, body)


@st.composite
def answers(draw: st.DrawFn, *, keeps_connection: bool = False) -> WireAnswer:
    """Draw one valid response, maybe behind informational ones."""
    kinds = ["length", "chunked", "bodiless", "head"]
    kind = draw(st.sampled_from(kinds if keeps_connection else [*kinds, "close"]))
    status = draw(st.sampled_from([204, 304] if kind == "bodiless" else [200, 201, 404, 503]))
    framed = draw(_bodies(kind))
    lines = [*draw(_fields), *framed.lines]
    if status == 304 and draw(st.booleans()):
        lines.append(b"Content-Length: 5")
    closes = not keeps_connection and draw(st.booleans())
    if closes:
        lines.append(b"Connection: close")
    raw = b"\r\n".join([b"HTTP/1.1 %d Some reason" % status, *lines, b"", framed.wire])
    reusable = not closes and kind != "close"
    return WireAnswer(
        draw(_informational) + raw,
        Answer(status, framed.length, framed.body, is_complete=True, is_reusable=reusable),
        is_head_request=kind == "head",
        ends_at_close=kind == "close",
    )


cuts = st.lists(st.integers(0, 2000), max_size=12)
"""Where to cut; positions wrap around the message's length."""
