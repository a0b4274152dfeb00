"""The pools of one configuration: made once per security domain, or taken over."""

import ssl
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

import attrs

from vsr.network.port import Network
from vsr.resources.backend_tls import BackendTls
from vsr.resources.cluster import Cluster, HttpVersion
from vsr.upstream.background import Background
from vsr.upstream.cluster_state import ClusterState
from vsr.upstream.dialer import ALPN, DomainDialer, SecurityDomain, TlsContexts
from vsr.upstream.pool import Pool

if TYPE_CHECKING:
    from vsr.upstream.h2_pool import AnyPool

PoolsByDomain: TypeAlias = "dict[SecurityDomain, AnyPool]"
ContextKey = tuple[BackendTls, HttpVersion]
"""TLS settings, and the HTTP versions that are offered with them."""


@attrs.define
class PoolMaker:
    """Finds the pool of every endpoint while a configuration is being built."""

    network: Network
    tls_context: TlsContexts
    """Makes the context of TLS settings; asked once for all pools that have the same."""
    background: Background
    earlier: "Mapping[SecurityDomain, AnyPool]"
    """Of the configuration before; those that are used again go on."""
    earlier_contexts: Mapping[ContextKey, ssl.SSLContext]
    pools: PoolsByDomain = attrs.field(factory=dict, init=False)
    contexts: dict[ContextKey, ssl.SSLContext] = attrs.field(factory=dict, init=False)

    def provide(self, cluster: Cluster, state: ClusterState) -> ClusterState:
        """Give each host of `state` the pool of its security domain; return `state`.

        A state that was taken over has the same domains, hence the same pools as before.
        """
        for host in state.hosts:
            host.pool = self._pool(SecurityDomain.of(cluster, host.endpoint))
        return state

    def _pool(self, domain: SecurityDomain) -> "AnyPool":
        pool = self.pools.get(domain)
        if pool is None:
            tls, version = domain.tls, domain.http_version
            context = None if tls is None else self._context(tls, version)
            pool = self.earlier.get(domain)
            if pool is None:
                dialer = DomainDialer(domain, self.network, context)
                if version is HttpVersion.HTTP_1_1:
                    pool = Pool(dialer)
                else:
                    # Without a backend that speaks HTTP/2 its library is not loaded before the
                    # Router is ready.
                    from vsr.upstream.h2_pool import H2Pool  # noqa: PLC0415

                    pool = H2Pool(dialer, version, domain.connect_timeout_s, self.background)
            self.pools[domain] = pool
        return pool

    def _context(self, tls: BackendTls, version: HttpVersion) -> ssl.SSLContext:
        key = tls, version
        context = self.contexts.get(key)
        if context is None:
            context = self.earlier_contexts.get(key)
            if context is None:
                context = self.tls_context(tls, ALPN[version])
            self.contexts[key] = context
        return context
