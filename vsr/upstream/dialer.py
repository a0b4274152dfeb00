"""Opens backend connections of one security domain."""

import ssl
from collections.abc import Callable, Mapping

import attrs
import trio

from vsr.errors import NoHealthyEndpoint, UpstreamConnectFailure
from vsr.network.port import (
    ConnectFailed,
    Connection,
    HostNotFound,
    Network,
    NetworkError,
    TlsFailed,
)
from vsr.network.tls import start_client_tls
from vsr.resources.cluster import Cluster, Endpoint, HttpVersion

Alpn = tuple[str, ...]
"""What we offer to speak over TLS, what we like best first; empty offers nothing."""
TlsContexts = Callable[[Alpn], ssl.SSLContext]

_ALPN: Mapping[HttpVersion, Alpn] = {
    HttpVersion.HTTP_1_1: (),
    HttpVersion.HTTP_2: ("h2",),
    HttpVersion.AUTO: ("h2", "http/1.1"),
}


@attrs.frozen
class SecurityDomain:
    """What connections must have in common to be shared between clusters."""

    server_name: str | None
    """TLS server name; None for cleartext."""
    connect_timeout_s: float
    ipv4_only: bool
    http_version: HttpVersion = HttpVersion.HTTP_1_1

    @classmethod
    def of(cls, cluster: Cluster) -> "SecurityDomain":
        """Return the domain of `cluster`; its first endpoint names the certificate.

        Source: the reference's upstream layer, which resolves IPv4 alone for a single DNS name.
        """
        first = cluster.endpoints[0] if cluster.endpoints else None
        return cls(
            server_name=first.host if first is not None and first.tls else None,
            connect_timeout_s=cluster.connect_timeout_s,
            ipv4_only=len(cluster.endpoints) == 1,
            http_version=cluster.http_version,
        )


@attrs.frozen
class DomainDialer:
    """Implements `routing.ports.Dialer` for one domain."""

    domain: SecurityDomain
    network: Network
    tls_context: TlsContexts
    """Asked once per TLS connection; hands out shared contexts."""

    async def dial(self, endpoint: Endpoint) -> Connection:
        """Connect to `endpoint`, TLS handshake included, within the connect timeout."""
        with trio.move_on_after(self.domain.connect_timeout_s):
            try:
                return await self._dial(endpoint)
            except HostNotFound:
                raise NoHealthyEndpoint from None
            except TlsFailed as error:
                raise UpstreamConnectFailure(f"TLS_error:|{error.reason}:TLS_error_end") from None
            except ConnectFailed as error:
                raise UpstreamConnectFailure(str(error)) from None
            except NetworkError:
                raise UpstreamConnectFailure from None
        raise UpstreamConnectFailure(timed_out=True)

    async def _dial(self, endpoint: Endpoint) -> Connection:
        connection = await self.network.connect(
            endpoint.host, endpoint.port, ipv4_only=self.domain.ipv4_only
        )
        domain = self.domain
        if domain.server_name is None:
            return connection
        alpn = _ALPN[domain.http_version]
        try:
            tls = await start_client_tls(connection, self.tls_context(alpn), domain.server_name)
            if domain.http_version is HttpVersion.HTTP_2 and tls.application_protocol != "h2":
                raise TlsFailed("NO_APPLICATION_PROTOCOL")  # noqa: TRY301  # as if it said so
        except BaseException:
            connection.close()
            raise
        return tls
