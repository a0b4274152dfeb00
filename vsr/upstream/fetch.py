"""Questions to services over HTTP that are no models: one POST, its answer read to the end."""

import attrs
import trio

from vsr.config.address import parse_address
from vsr.deadline import Deadline
from vsr.errors import CallFailed, DeadlineExceeded
from vsr.network.port import Network
from vsr.resources.backend_tls import SYSTEM_TLS
from vsr.resources.cluster import Endpoint, HttpVersion
from vsr.resources.egress import Egress
from vsr.routing.outcome import Attempt
from vsr.routing.ports import CallAnswer
from vsr.upstream.attempt import Limits, WireRequest, try_host
from vsr.upstream.caller import collect
from vsr.upstream.dialer import ALPN, DomainDialer, SecurityDomain, TlsContexts
from vsr.upstream.policy.host import Host
from vsr.upstream.pool import Pool
from vsr.upstream.uncounted import UNCOUNTED

_CONNECT_TIMEOUT_S = 10.0
"""As of a cluster."""
_LINES = [(b"content-type", b"application/json"), (b"accept", b"application/json")]


@attrs.define(eq=False)
class HttpFetch:
    """Implements `routing.ports.Fetch` with connections of its own, under the rules of egress.

    Connections are kept and used again. Whatever ends a question other than its whole answer (a
    failure, a limit, a cancellation) drops its connection at once. Nothing is tried twice.
    """

    network: Network
    tls_context: TlsContexts
    egress: Egress | None = None
    """None allows every address."""
    _pools: dict[SecurityDomain, Pool] = attrs.field(factory=dict, init=False)
    _is_closed: bool = attrs.field(default=False, init=False)

    async def __call__(
        self, url: str, body: bytes, deadline: Deadline, *, limit_bytes: int
    ) -> CallAnswer:
        """Return the whole answer to a POST of JSON; see `routing.ports.Fetch`."""
        endpoint, target = _place(url)
        now = trio.current_time()
        if deadline.has_passed(now):
            raise DeadlineExceeded
        host = Host(endpoint)
        host.pool = self._pool(endpoint)
        attempt = Attempt("", endpoint.name, endpoint.address, now)
        request = WireRequest(b"POST", target, _LINES, body)
        with trio.CancelScope(deadline=deadline.at):
            response = await try_host(
                request, UNCOUNTED, host, attempt, Limits(deadline.at), idle_s=None
            )
            try:
                answer, first_byte_at = await collect(response, limit_bytes)
            finally:
                response.close()
            return CallAnswer(response.status, response.headers, answer, (attempt,), first_byte_at)
        raise DeadlineExceeded

    @property
    def connections_in_use(self) -> int:
        """Return how many connections carry a question."""
        return sum(pool.in_use for pool in self._pools.values())

    @property
    def idle_connections(self) -> int:
        """Return how many connections wait for use."""
        return sum(pool.idle for pool in self._pools.values())

    def close(self) -> None:
        """Close idle connections; those in use close when their question has ended."""
        self._is_closed = True
        for pool in self._pools.values():
            pool.close()

    def _pool(self, endpoint: Endpoint) -> Pool:
        domain = SecurityDomain(
            tls=SYSTEM_TLS if endpoint.tls else None,
            server_name=endpoint.server_name if endpoint.tls else "",
            connect_timeout_s=_CONNECT_TIMEOUT_S,
            ipv4_only=False,
            egress=self.egress,
        )
        pool = self._pools.get(domain)
        if pool is None:
            tls = domain.tls
            alpn = ALPN[HttpVersion.HTTP_1_1]
            context = None if tls is None else self.tls_context(tls, alpn)
            pool = self._pools[domain] = Pool(DomainDialer(domain, self.network, context))
            if self._is_closed:
                pool.close()
        return pool


def _place(url: str) -> tuple[Endpoint, bytes]:
    """Return whom a URL names, and the path that is asked there.

    Raises:
        CallFailed: it is no such URL; the text does not show it.
    """
    _, colon, rest = url.partition("://")
    try:
        if not colon:
            raise ValueError("it has no scheme")  # noqa: TRY301  # told as the other faults are
        # Whatever the host is, a certificate is checked against it.
        address = parse_address(url, has_server_name=True)
    except ValueError as error:
        raise CallFailed(f"the service's URL cannot be used: {error}") from None
    path = "/" + rest.partition("/")[2]
    endpoint = Endpoint("service", address.host, address.port, tls=address.scheme == "https")
    return endpoint, path.encode()
