"""One client request of a parity corpus, with the answer its backend gives."""

import msgspec
import yaml

from vsr.headers import HeaderLine, Headers
from vsr.routing.request import Request

AUTHORITY = b"localhost:8899"
SCHEME = b"http"
_PROXY_CONTROL = frozenset(
    b"x-envoy-" + name
    for name in (
        b"expected-rq-timeout-ms",
        b"force-trace",
        b"hedge-on-per-try-timeout",
        b"internal",
        b"ip-tags",
        b"max-retries",
        b"original-url",
        b"retriable-header-names",
        b"retriable-status-codes",
        b"retry-grpc-on",
        b"retry-on",
        b"upstream-alt-stat-name",
        b"upstream-rq-per-try-timeout-ms",
        b"upstream-rq-timeout-alt-response",
        b"upstream-rq-timeout-ms",
    )
)
"""What the proxy in front drops before routing sees the request.

Source: the reference's corpus, request as the core sees it.
"""
_NO_BODY = frozenset({204, 304})


class Canned(msgspec.Struct, frozen=True):
    """The response of a fake backend; each chunk arrives as one read."""

    status: int
    lines: tuple[HeaderLine, ...]
    chunks: tuple[bytes, ...]
    is_stream: bool = False
    has_length: bool = True
    """Whether the length is declared: that of a whole body is, that of chunks is not."""

    @property
    def body(self) -> bytes:
        """Return all chunks together."""
        return b"".join(self.chunks)

    def headers(self) -> Headers:
        """Return the header lines as they arrive."""
        lines = list(self.lines)
        if self.has_length:
            lines.append((b"content-length", b"%d" % len(self.body)))
        return Headers(lines)


class Case(msgspec.Struct, frozen=True):
    """One request, and what its backend answers; None means that no call is expected."""

    name: str
    method: bytes
    target: bytes
    lines: tuple[HeaderLine, ...]
    """As the client sends them; see `headers`."""
    body: bytes = b""
    canned: Canned | None = None

    @property
    def request_id(self) -> str:
        """Return the value of `x-request-id`."""
        return f"parity-{self.name}"

    def headers(self) -> Headers:
        """Return the header lines as routing gets them from the proxy in front."""
        lines = [line for line in self.lines if line[0] not in _PROXY_CONTROL]
        if self.body:
            lines.append((b"content-length", b"%d" % len(self.body)))
        lines.append((b"x-forwarded-proto", SCHEME))
        lines.append((b"x-request-id", self.request_id.encode()))
        return Headers(lines)

    def request(self, body: bytes) -> Request:
        """Return the request with as much of its body as is known: all of it or nothing."""
        return Request(
            self.method, self.target, AUTHORITY, SCHEME, self.headers(), body, self.request_id
        )

    @property
    def is_answered_with_body(self) -> bool:
        """Return whether the backend's response has a body phase."""
        canned = self.canned
        if canned is None or self.method == b"HEAD" or canned.status in _NO_BODY:
            return False
        return canned.is_stream or bool(canned.body)


class _RequestText(msgspec.Struct, forbid_unknown_fields=True):
    method: str
    path: str
    headers: list[tuple[str, str]] = []
    body: str = ""


class _CaseText(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    request: _RequestText
    upstream: str = ""


class _CannedText(msgspec.Struct, forbid_unknown_fields=True):
    status: int
    headers: list[tuple[str, str]] = []
    body: str | None = None
    chunks: list[str] | None = None


class _CasesText(msgspec.Struct, forbid_unknown_fields=True):
    cases: list[_CaseText]
    upstreams: dict[str, _CannedText] = {}


def read_cases(text: str) -> dict[str, Case]:
    """Return the cases of a `cases.yaml` by name, in file order.

    Raises:
        ValueError: the text has another form, or a case names a response or takes a name twice.
    """
    document = msgspec.convert(yaml.safe_load(text), _CasesText)
    canned = {name: _canned(given) for name, given in document.upstreams.items()}
    cases: dict[str, Case] = {}
    for given in document.cases:
        if given.upstream and given.upstream not in canned:
            raise ValueError(f"case {given.name}: there is no response {given.upstream!r}")
        if given.name in cases:
            raise ValueError(f"case {given.name} is there twice")
        request = given.request
        cases[given.name] = Case(
            given.name,
            request.method.encode(),
            request.path.encode(),
            _lines(request.headers),
            request.body.encode(),
            canned.get(given.upstream),
        )
    return cases


def _canned(given: _CannedText) -> Canned:
    is_stream = given.chunks is not None
    parts = given.chunks if given.chunks is not None else [given.body or ""]
    chunks = tuple(part.encode() for part in parts)
    lines = _lines(given.headers)
    return Canned(given.status, lines, chunks, is_stream, has_length=given.body is not None)


def _lines(pairs: list[tuple[str, str]]) -> tuple[HeaderLine, ...]:
    return tuple((name.lower().encode(), value.encode()) for name, value in pairs)
