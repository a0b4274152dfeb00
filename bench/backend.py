"""The model server behind every proxy: buffered replies, and streams at a steady pace.

`python -m bench.backend --port PORT`; one process, one epoll, no framework.
"""

import argparse
import heapq
import select
import socket
import time

import httptools

from bench.traffic import (
    CHUNK_INTERVAL_MS,
    chat_reply,
    requested_chunks,
    stream_event,
)

_INTERVAL_NS = CHUNK_INTERVAL_MS * 1_000_000
# The generator opens its streams over one interval and reads nothing meanwhile.
_FIRST_CHUNK_NS = 2 * _INTERVAL_NS
_BUFFERED = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (
    len(chat_reply()),
    chat_reply(),
)
_STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\n"
    b"transfer-encoding: chunked\r\n\r\n"
)


class _Connection:
    """One connection; the method names are httptools' callbacks."""

    __slots__ = ("_body", "_parser", "chunks_left", "requests", "sock")

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.requests: list[int] = []
        self.chunks_left = 0
        self._body = b""
        self._parser = httptools.HttpRequestParser(self)

    def receive(self) -> bool:
        """Read once; `requests` then holds the chunks asked for. False means it is over."""
        try:
            data = self.sock.recv(65_536)
            if data:
                self._parser.feed_data(data)
        except (OSError, httptools.HttpParserError):
            return False
        return bool(data)

    def on_message_begin(self) -> None:
        self._body = b""

    def on_body(self, data: bytes) -> None:
        self._body += data

    def on_message_complete(self) -> None:
        self.requests.append(requested_chunks(self._body))

    def send(self, data: bytes) -> bool:
        """Send everything at once; a peer that is too slow for that counts as gone."""
        try:
            return self.sock.send(data) == len(data)
        except OSError:
            return False


class _Backend:
    def __init__(self, port: int) -> None:
        self._listener = socket.create_server(("127.0.0.1", port), backlog=1024)
        self._listener.settimeout(0)
        self._epoll = select.epoll()
        self._epoll.register(self._listener, select.EPOLLIN)
        self._connections: dict[int, _Connection] = {}
        # (due at, sequence number, connection): the number keeps equal times comparable.
        self._due: list[tuple[int, int, _Connection]] = []
        self._sequence = 0

    def serve(self) -> None:
        """Serve until killed."""
        while True:
            self._wait()
            for descriptor, _ in self._epoll.poll(0):
                if descriptor == self._listener.fileno():
                    self._accept()
                else:
                    self._read(self._connections[descriptor])
            self._send_due()

    def _wait(self) -> None:
        # epoll's own timeout counts in whole milliseconds, select's in microseconds.
        timeout_s = None
        if self._due:
            timeout_s = max(0, self._due[0][0] - time.monotonic_ns()) / 1e9
        select.select([self._epoll], [], [], timeout_s)

    def _accept(self) -> None:
        try:
            sock, _ = self._listener.accept()
        except OSError:
            return
        sock.settimeout(0)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connections[sock.fileno()] = _Connection(sock)
        self._epoll.register(sock, select.EPOLLIN)

    def _read(self, connection: _Connection) -> None:
        alive = connection.receive()
        for chunks in connection.requests:
            alive = alive and connection.send(_STREAM_HEAD if chunks else _BUFFERED)
            if alive and chunks:
                connection.chunks_left = chunks
                self._schedule(connection, time.monotonic_ns() + _FIRST_CHUNK_NS)
        connection.requests.clear()
        if not alive:
            self._close(connection)

    def _send_due(self) -> None:
        while self._due and self._due[0][0] <= time.monotonic_ns():
            due_at, _, connection = heapq.heappop(self._due)
            if connection.sock.fileno() < 0:
                continue
            event = stream_event(time.monotonic_ns())
            chunk = b"%x\r\n%b\r\n" % (len(event), event)
            connection.chunks_left -= 1
            if connection.chunks_left:
                self._schedule(connection, due_at + _INTERVAL_NS)
            else:
                chunk += b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"
            if not connection.send(chunk):
                self._close(connection)

    def _schedule(self, connection: _Connection, due_at: int) -> None:
        self._sequence += 1
        heapq.heappush(self._due, (due_at, self._sequence, connection))

    def _close(self, connection: _Connection) -> None:
        self._connections.pop(connection.sock.fileno(), None)
        connection.sock.close()


def main() -> None:
    """Serve on the port given."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    _Backend(parser.parse_args().port).serve()


if __name__ == "__main__":
    main()
