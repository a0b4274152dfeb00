"""Opens backend connections of one security domain."""

import ssl
from collections.abc import Callable

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
from vsr.resources.cluster import Cluster, Endpoint


@attrs.frozen
class SecurityDomain:
    """What connections must have in common to be shared between clusters."""

    server_name: str | None
    """TLS server name; None for cleartext."""
    connect_timeout_s: float
    ipv4_only: bool

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
        )

    @classmethod
    def of_endpoint(cls, cluster: Cluster, endpoint: Endpoint) -> "SecurityDomain":
        """Return the domain of one endpoint of `cluster`, whose own host names the certificate."""
        server_name = endpoint.host if endpoint.tls else None
        return attrs.evolve(cls.of(cluster), server_name=server_name)


@attrs.frozen
class DomainDialer:
    """Implements `routing.ports.Dialer` for one domain."""

    domain: SecurityDomain
    network: Network
    tls_context: Callable[[], ssl.SSLContext]
    """Asked once per TLS connection; hands out one shared context."""

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
        if self.domain.server_name is None:
            return connection
        try:
            return await start_client_tls(connection, self.tls_context(), self.domain.server_name)
        except BaseException:
            connection.close()
            raise
