"""A collector of spans over OTLP/HTTP on a real socket."""

from functools import partial

import attrs
import trio
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, Span

from vsr.http.framing import RequestHead
from vsr.http.h1_server import End, ServerConnection

_READ_BYTES = 65_536


@attrs.define(eq=False)
class Collector:
    """Takes every batch, or answers it with an error."""

    status: int = 200
    port: int = 0
    paths: list[str] = attrs.field(factory=list)
    resources: list[ResourceSpans] = attrs.field(factory=list)
    got: trio.Event = attrs.field(factory=trio.Event)
    """Set with the first batch."""

    async def start(self, nursery: trio.Nursery) -> "Collector":
        """Listen, and serve until `nursery` is cancelled."""
        listeners = await nursery.start(partial(trio.serve_tcp, self._serve, 0, host="127.0.0.1"))
        self.port = listeners[0].socket.getsockname()[1]
        return self

    @property
    def spans(self) -> list[Span]:
        """Return all spans so far."""
        scopes = [scope for each in self.resources for scope in each.scope_spans]
        return [span for scope in scopes for span in scope.spans]

    async def _serve(self, stream: trio.SocketStream) -> None:
        http, head, body = ServerConnection(), None, b""
        async for data in stream:
            http.feed(bytes(data))
            while (event := http.next_event()) is not None:
                if isinstance(event, RequestHead):
                    head, body = event, b""
                elif isinstance(event, bytes):
                    body += event
                elif event is End.REQUEST and head is not None:
                    self._take(head, body)
                    answer = b"HTTP/1.1 %d Whatever\r\ncontent-length: 6\r\n\r\ncanary"
                    await stream.send_all(answer % self.status)

    def _take(self, head: RequestHead, body: bytes) -> None:
        self.paths.append(head.target.decode())
        self.resources += ExportTraceServiceRequest.FromString(body).resource_spans
        self.got.set()
