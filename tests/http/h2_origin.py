"""An HTTP/2 client without I/O, and a server that sends it frames."""

from collections.abc import Sequence

import attrs
from hpack import Encoder
from hyperframe.frame import Frame, GoAwayFrame, HeadersFrame, RstStreamFrame, SettingsFrame

from tests.http.h2_peer import parse
from vsr.headers import HeaderLine
from vsr.http.h2_client import ClientConnection
from vsr.http.h2_client_events import ClientEvent, ResponseBroken
from vsr.http.h2_frames import PREFACE
from vsr.http.h2_head import encode_h2_request

URL = (b"http", b"backend", b"/v1/chat/completions")
HANDSHAKE = SettingsFrame(0)


@attrs.define
class Origin:
    """A server that encodes frames, and a client that it has sent its settings."""

    settings: dict[int, int] = attrs.field(factory=dict)
    http: ClientConnection = attrs.field(factory=ClientConnection)
    encoder: Encoder = attrs.field(factory=Encoder)
    now: float = 0.0

    def __attrs_post_init__(self) -> None:
        preface = self.http.take_output()
        assert preface.startswith(PREFACE)
        parse(preface[len(PREFACE) :])
        self.send(SettingsFrame(0, settings=self.settings), SettingsFrame(0, flags=["ACK"]))
        self.sent()

    def send(self, *frames: Frame | bytes) -> list[ClientEvent]:
        """Send frames, or any bytes; return what the client tells of them."""
        for frame in frames:
            self.http.feed(frame if isinstance(frame, bytes) else frame.serialize(), now=self.now)
        return events_of(self.http)

    def sent(self) -> list[Frame]:
        """Return what the client has put out since."""
        return parse(self.http.take_output())

    def ask(self, body_bytes: int = 0, *, method: bytes = b"POST") -> int:
        """Let the client begin a request; return its stream."""
        fields = encode_h2_request(method, URL, [], body_bytes)
        return self.http.open(fields, is_head_request=method == b"HEAD", has_ended=not body_bytes)

    def head(
        self,
        stream_id: int,
        status: int | bytes | None = 200,
        *lines: HeaderLine,
        ends: bool = False,
    ) -> HeadersFrame:
        """Return a response's head; no status leaves it out."""
        word = status if isinstance(status, bytes) else b"%d" % (status or 0)
        fields = [*([] if status is None else [(b":status", word)]), *lines]
        return self.fields(stream_id, fields, ends=ends)

    def fields(
        self, stream_id: int, fields: Sequence[HeaderLine], *, ends: bool = False
    ) -> HeadersFrame:
        """Return any field list."""
        flags = ["END_HEADERS", "END_STREAM"] if ends else ["END_HEADERS"]
        return HeadersFrame(stream_id, self.encoder.encode(fields), flags=flags)


def events_of(http: ClientConnection) -> list[ClientEvent]:
    """Return all events there are."""
    events = []
    while (event := http.next_event()) is not None:
        events.append(event)
    return events


def goaway(last_stream_id: int, code: int = 0) -> GoAwayFrame:
    """Return the frame after which the server takes no more streams."""
    return GoAwayFrame(0, last_stream_id=last_stream_id, error_code=code)


def resets(frames: Sequence[Frame]) -> list[tuple[int, int]]:
    """Return the streams that were reset, and why."""
    return [
        (frame.stream_id, frame.error_code) for frame in frames if isinstance(frame, RstStreamFrame)
    ]


def kinds(events: Sequence[ClientEvent]) -> list[str]:
    """Return what kinds of events they are."""
    return [type(event).__name__ for event in events]


def fault_of(events: Sequence[ClientEvent]) -> str:
    """Return why the one response broke."""
    [event] = [each for each in events if isinstance(each, ResponseBroken)]
    return str(event.fault)
