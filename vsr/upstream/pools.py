"""The pools of one configuration: made once per security domain, or taken over."""

import ssl
from collections.abc import Callable, Mapping

import attrs

from vsr.network.port import Network
from vsr.resources.backend_tls import BackendTls
from vsr.resources.cluster import Cluster
from vsr.upstream.cluster_state import ClusterState
from vsr.upstream.dialer import DomainDialer, SecurityDomain
from vsr.upstream.pool import Pool

PoolsByDomain = dict[SecurityDomain, Pool]
ContextsByTls = dict[BackendTls, ssl.SSLContext]


@attrs.define
class PoolMaker:
    """Finds the pool of every endpoint while a configuration is being built."""

    network: Network
    tls_context: Callable[[BackendTls], ssl.SSLContext]
    """Makes the context of TLS settings; asked once for all pools that have the same."""
    earlier: Mapping[SecurityDomain, Pool]
    """Of the configuration before; those that are used again go on."""
    earlier_contexts: Mapping[BackendTls, ssl.SSLContext]
    pools: PoolsByDomain = attrs.field(factory=dict, init=False)
    contexts: ContextsByTls = attrs.field(factory=dict, init=False)

    def provide(self, cluster: Cluster, state: ClusterState) -> ClusterState:
        """Give each host of `state` the pool of its security domain; return `state`.

        A state that was taken over has the same domains, hence the same pools as before.
        """
        for host in state.hosts:
            host.pool = self._pool(SecurityDomain.of(cluster, host.endpoint))
        return state

    def _pool(self, domain: SecurityDomain) -> Pool:
        pool = self.pools.get(domain)
        if pool is None:
            context = None if domain.tls is None else self._context(domain.tls)
            pool = self.earlier.get(domain)
            if pool is None:
                pool = Pool(DomainDialer(domain, self.network, context))
            self.pools[domain] = pool
        return pool

    def _context(self, tls: BackendTls) -> ssl.SSLContext:
        context = self.contexts.get(tls)
        if context is None:
            context = self.earlier_contexts.get(tls)
            if context is None:
                context = self.tls_context(tls)
            self.contexts[tls] = context
        return context
