"""What the server side of an HTTP/2 connection tells of; stream ids name the request."""

import msgspec

from vsr.http.framing import FramingError, RequestHead


class RequestArrived(msgspec.Struct):
    """A request's head; its body follows unless `has_ended`."""

    stream_id: int
    head: RequestHead
    has_ended: bool


class RequestRefused(msgspec.Struct):
    """A head that must not be served; it is to be answered by the fault's status."""

    stream_id: int
    fault: FramingError


class BodyArrived(msgspec.Struct):
    """Bytes of a body, not empty; their window is given back by `credit`."""

    stream_id: int
    data: bytes


class BodyEnded(msgspec.Struct):
    """The request is whole."""

    stream_id: int


class BodyBroken(msgspec.Struct):
    """The body turned out malformed; nothing more of it comes."""

    stream_id: int
    fault: FramingError


class StreamReset(msgspec.Struct):
    """The stream is gone: the client does not want an answer."""

    stream_id: int


class DrainAnswered(msgspec.Struct):
    """The client knows of the drain: what it sent before that has arrived."""


class PeerLeaving(msgspec.Struct):
    """The client opens no more streams; those under way go on."""


class ConnectionEnded(msgspec.Struct):
    """The connection cannot go on; the client is told why, and nothing more comes."""

    code: int


Event = (
    RequestArrived
    | RequestRefused
    | BodyArrived
    | BodyEnded
    | BodyBroken
    | StreamReset
    | DrainAnswered
    | PeerLeaving
    | ConnectionEnded
)
