"""The load generator: clients that ask again and again, or streams that time every chunk.

`python -m bench.generator --port PORT --clients N [--seconds S | --chunks N]` prints one JSON
object, the fields of `bench.load.Load`.
"""

import argparse
import json
import select
import socket
import time

import httptools

from bench.traffic import CHAT_PATH, CHUNK_INTERVAL_MS, chat_request, event_sent_at_ns

_GRACE_NS = 10_000_000_000


class _Client:
    """One keep-alive connection; the method names are httptools' callbacks."""

    __slots__ = (
        "_parser",
        "_pending",
        "_request",
        "complete",
        "delays_ns",
        "now",
        "sent_at",
        "sock",
    )

    def __init__(self, port: int, request: bytes) -> None:
        self.delays_ns: list[int] = []
        self.complete = False
        self.now = 0
        self.sent_at = 0
        self._request = request
        self._pending = b""
        self._parser = httptools.HttpResponseParser(self)
        self.sock = socket.create_connection(("127.0.0.1", port), timeout=5)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self) -> None:
        self.complete = False
        self.sent_at = time.monotonic_ns()
        self.sock.sendall(self._request)

    def receive(self) -> bool:
        """Read once; False means the connection is over."""
        try:
            data = self.sock.recv(65_536)
            self.now = time.monotonic_ns()
            if data:
                self._parser.feed_data(data)
        except (OSError, httptools.HttpParserError):
            return False
        return bool(data)

    def is_ok(self) -> bool:
        return self._parser.get_status_code() == 200

    def on_body(self, data: bytes) -> None:
        *events, self._pending = (self._pending + data).split(b"\n\n")
        for event in events:
            sent_at_ns = event_sent_at_ns(event)
            if sent_at_ns is not None:
                self.delays_ns.append(self.now - sent_at_ns)

    def on_message_complete(self) -> None:
        self.complete = True
        self._pending = b""


def main() -> None:
    """Run the load given on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--clients", type=int, required=True)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--chunks", type=int, default=0)
    options = parser.parse_args()
    body = chat_request(options.chunks)
    request = (
        f"POST {CHAT_PATH} HTTP/1.1\r\nhost: 127.0.0.1:{options.port}\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    ).encode() + body
    clients = [_Client(options.port, request) for _ in range(options.clients)]
    if options.chunks:
        result = _stream(clients, options.chunks)
    else:
        result = _repeat(clients, options.seconds)
    print(json.dumps(result))


def _repeat(clients: list[_Client], seconds: float) -> dict[str, float]:
    """Let every client ask as soon as it was answered, for `seconds`."""
    epoll, by_descriptor = _watch(clients)
    latencies_ns: list[int] = []
    errors = 0
    started_at = time.monotonic_ns()
    stop_at = started_at + int(seconds * 1e9)
    for client in clients:
        client.ask()
    while by_descriptor and time.monotonic_ns() < stop_at:
        for descriptor, _ in epoll.poll(0.1):
            client = by_descriptor[descriptor]
            if not client.receive():
                errors += 1
                del by_descriptor[descriptor]
                client.sock.close()
            elif client.complete:
                latencies_ns.append(client.now - client.sent_at)
                errors += not client.is_ok()
                client.ask()
    return _result(latencies_ns, errors, time.monotonic_ns() - started_at)


def _stream(clients: list[_Client], chunks: int) -> dict[str, float]:
    """Read one stream per client to its end; errors are the streams that broke or fell short."""
    epoll, by_descriptor = _watch(clients)
    started_at = time.monotonic_ns()
    interval_ns = CHUNK_INTERVAL_MS * 1_000_000
    for index, client in enumerate(clients):
        # Spread evenly over one interval, so that chunks do not come in bursts.
        ask_at = started_at + interval_ns * index // len(clients)
        time.sleep(max(0, ask_at - time.monotonic_ns()) / 1e9)
        client.ask()
    stop_at = time.monotonic_ns() + chunks * interval_ns + _GRACE_NS
    whole = 0
    while by_descriptor and time.monotonic_ns() < stop_at:
        for descriptor, _ in epoll.poll(0.1):
            client = by_descriptor[descriptor]
            alive = client.receive()
            if client.complete or not alive:
                whole += client.complete and client.is_ok() and len(client.delays_ns) == chunks
                del by_descriptor[descriptor]
                client.sock.close()
    delays_ns = [delay for client in clients for delay in client.delays_ns]
    return _result(delays_ns, len(clients) - whole, time.monotonic_ns() - started_at)


def _watch(clients: list[_Client]) -> tuple[select.epoll, dict[int, _Client]]:
    epoll = select.epoll()
    for client in clients:
        epoll.register(client.sock, select.EPOLLIN)
    return epoll, {client.sock.fileno(): client for client in clients}


def _result(delays_ns: list[int], errors: int, elapsed_ns: int) -> dict[str, float]:
    ordered = sorted(delays_ns) or [0]
    return {
        "count": len(delays_ns),
        "errors": errors,
        "seconds": elapsed_ns / 1e9,
        "p50_us": ordered[len(ordered) // 2] / 1e3,
        "p99_us": ordered[len(ordered) * 99 // 100] / 1e3,
    }


if __name__ == "__main__":
    main()
