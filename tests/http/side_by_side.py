"""The same bytes through connections with and without known lines."""

from collections.abc import Iterable

import attrs

from vsr.headers import HeaderLine
from vsr.http.framing import FramingError, RequestHead
from vsr.http.h1_client import ClientConnection
from vsr.http.h1_server import Event, ServerConnection
from vsr.http.plain_head import PlainHeads


@attrs.define
class Request:
    """All that is said of one request."""

    method: bytes
    target: bytes
    authority: bytes
    lines: list[HeaderLine]
    length: int | None
    keep_alive: bool
    is_http_1_0: bool
    expects_continue: bool
    dropped: frozenset[bytes]
    fields: dict[bytes, bytes]
    body: bytes = b""
    is_ended: bool = False


@attrs.define
class Served:
    """What comes out of a server connection."""

    requests: list[Request]
    fault: tuple[int, str] | None = None
    is_between_requests: bool = False


@attrs.define
class Response:
    """All that is said of one response."""

    head: tuple[int, list[HeaderLine], int | None] | None = None
    body: bytes = b""
    is_complete: bool = False
    is_reusable: bool = False
    fault: str | None = None


@attrs.frozen
class Reply:
    """What a backend sends for one request."""

    pieces: tuple[bytes, ...]
    is_head_request: bool = False
    ends_at_close: bool = False


def serve(pieces: Iterable[bytes], heads: PlainHeads | None, *, takes_late: bool) -> Served:
    """Feed a server connection.

    Args:
        pieces: as they arrive.
        heads: of the connection.
        takes_late: whether events are taken only when everything has arrived.
    """
    connection = ServerConnection(heads)
    served = Served([])
    for piece in pieces:
        connection.feed(piece)
        if not takes_late:
            _take(connection, served)
    _take(connection, served)
    served.is_between_requests = connection.is_between_requests
    return served


def receive(replies: Iterable[Reply], heads: PlainHeads | None) -> list[Response]:
    """Let a client connection carry requests in turn, as long as it can be used again."""
    connection = ClientConnection(heads)
    responses: list[Response] = []
    for reply in replies:
        responses.append(_receive_one(connection, reply))
        if not connection.is_reusable:
            break
    return responses


def _take(connection: ServerConnection, served: Served) -> None:
    while (event := connection.next_event()) is not None:
        assert served.fault is None, "nothing may come after a fault"
        _add(served, event)


def _add(served: Served, event: Event) -> None:
    requests = served.requests
    if isinstance(event, FramingError):
        served.fault = event.status, str(event)
    elif isinstance(event, RequestHead):
        assert not requests or requests[-1].is_ended, "a head inside another request"
        requests.append(_request(event))
    elif isinstance(event, bytes):
        assert not requests[-1].is_ended, "body behind the end"
        requests[-1].body += event
    else:
        assert not requests[-1].is_ended, "a second end"
        requests[-1].is_ended = True


def _request(head: RequestHead) -> Request:
    return Request(
        head.method,
        head.target,
        head.authority,
        head.lines,
        head.length,
        head.keep_alive,
        head.is_http_1_0,
        head.expects_continue,
        head.dropped,
        head.fields,
        head.body or b"",
        is_ended=head.body is not None,
    )


def _receive_one(connection: ClientConnection, reply: Reply) -> Response:
    response = Response()
    connection.begin(is_head_request=reply.is_head_request)
    try:
        for piece in reply.pieces:
            connection.feed(piece)
            response.body += connection.take()
        if reply.ends_at_close:
            connection.feed_end()
    except FramingError as fault:
        response.fault = str(fault)
    head = connection.head
    if head is not None:
        response.head = head.status, head.lines, head.length
        assert head.fields is None or head.fields == dict(head.lines)
        assert head.fields is None or len(head.fields) == len(head.lines)
    response.is_complete, response.is_reusable = connection.is_complete, connection.is_reusable
    return response
