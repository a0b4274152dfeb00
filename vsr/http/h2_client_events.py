"""What the client side of an HTTP/2 connection tells of, beside `h2_events`; see there."""

import msgspec

from vsr.http.framing import FramingError, ResponseHead
from vsr.http.h2_events import BodyArrived, ConnectionEnded


class HeadArrived(msgspec.Struct):
    """A response's head; its body follows unless `has_ended`."""

    stream_id: int
    head: ResponseHead
    has_ended: bool


class ResponseEnded(msgspec.Struct):
    """The response is whole; what is unsent of its request is not wanted any more."""

    stream_id: int


class ResponseBroken(msgspec.Struct):
    """The response turned out malformed; the stream is reset."""

    stream_id: int
    fault: FramingError


class StreamClosed(msgspec.Struct):
    """The server closed the stream; a response that had not ended never will."""

    stream_id: int
    is_refused: bool
    """Whether it surely did nothing for the request. Source: RFC 9113 section 8.7."""


ClientEvent = (
    HeadArrived | BodyArrived | ResponseEnded | ResponseBroken | StreamClosed | ConnectionEnded
)
