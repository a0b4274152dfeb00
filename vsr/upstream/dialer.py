"""Opens backend connections of one security domain."""

import ssl
from collections.abc import Callable, Mapping
from functools import partial

import msgspec
import trio

from vsr.errors import EgressRefused, NoHealthyEndpoint, UpstreamConnectFailure
from vsr.network.port import (
    ConnectFailed,
    Connection,
    HostNotFound,
    Network,
    NetworkError,
    NothingAllowed,
    TlsFailed,
)
from vsr.network.tls import start_client_tls
from vsr.resources.backend_tls import BackendTls
from vsr.resources.cluster import Cluster, Endpoint, HttpVersion
from vsr.resources.egress import Egress

Alpn = tuple[str, ...]
"""What we offer to speak over TLS, what we like best first; empty offers nothing."""

TlsContexts = Callable[[BackendTls, Alpn], ssl.SSLContext]
"""Makes the context of TLS settings, on which something is offered."""

ALPN: Mapping[HttpVersion, Alpn] = {
    HttpVersion.HTTP_1_1: (),
    HttpVersion.HTTP_2: ("h2",),
    HttpVersion.AUTO: ("h2", "http/1.1"),
}


class SecurityDomain(msgspec.Struct, frozen=True):
    """What connections must have in common to be shared between endpoints."""

    tls: BackendTls | None
    """None for cleartext."""
    server_name: str
    """Name that the certificate must have; empty for cleartext."""
    connect_timeout_s: float
    ipv4_only: bool
    egress: Egress | None
    """None allows every address."""
    http_version: HttpVersion = HttpVersion.HTTP_1_1

    @classmethod
    def of(cls, cluster: Cluster, endpoint: Endpoint) -> "SecurityDomain":
        """Return the domain of an endpoint of `cluster`.

        Source: the reference's upstream layer, which resolves IPv4 alone for a single DNS name.
        That every endpoint has a name and settings of its own is ours.
        """
        return cls(
            tls=endpoint.tls_settings if endpoint.tls else None,
            server_name=endpoint.server_name if endpoint.tls else "",
            connect_timeout_s=cluster.connect_timeout_s,
            ipv4_only=len(cluster.endpoints) == 1,
            egress=cluster.egress,
            http_version=endpoint.http_version,
        )


class DomainDialer(msgspec.Struct, frozen=True):
    """Implements `routing.ports.Dialer` for one domain."""

    domain: SecurityDomain
    network: Network
    context: ssl.SSLContext | None
    """Made of the domain's TLS settings; None exactly for cleartext."""

    async def dial(self, endpoint: Endpoint) -> Connection:
        """Connect to `endpoint`, TLS handshake included, within the connect timeout."""
        with trio.move_on_after(self.domain.connect_timeout_s):
            try:
                return await self._dial(endpoint)
            except HostNotFound:
                raise NoHealthyEndpoint from None
            except NothingAllowed:
                raise EgressRefused from None
            except TlsFailed as error:
                raise UpstreamConnectFailure(f"TLS_error:|{error.reason}:TLS_error_end") from None
            except ConnectFailed as error:
                raise UpstreamConnectFailure(str(error)) from None
            except NetworkError:
                raise UpstreamConnectFailure from None
        raise UpstreamConnectFailure(timed_out=True)

    async def _dial(self, endpoint: Endpoint) -> Connection:
        domain, host, port = self.domain, endpoint.host, endpoint.port
        allows = None if domain.egress is None else partial(domain.egress.allows, host, port)
        connection = await self.network.connect(
            host, port, ipv4_only=domain.ipv4_only, allows=allows
        )
        if domain.tls is None:
            return connection
        assert self.context is not None  # noqa: S101  # see there
        try:
            tls = await start_client_tls(connection, self.context, domain.server_name)
            if domain.http_version is HttpVersion.HTTP_2 and tls.application_protocol != "h2":
                raise TlsFailed("NO_APPLICATION_PROTOCOL")  # noqa: TRY301  # as if it said so
        except BaseException:
            connection.close()
            raise
        return tls
