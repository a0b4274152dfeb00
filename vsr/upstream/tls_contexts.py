"""From the TLS settings of a backend to what its connections are made with."""

import ssl
from functools import cache

from vsr.errors import ConfigRejected, Problem
from vsr.network.tls_client import ClientTlsRejected, client_context
from vsr.resources.backend_tls import SYSTEM_TLS, BackendTls
from vsr.upstream.dialer import Alpn


def backend_context(tls: BackendTls, alpn: Alpn) -> ssl.SSLContext:
    """Return a context for connections with these settings, on which `alpn` is offered.

    Raises:
        ConfigRejected: OpenSSL cannot use them; loading the document asked it the same before.
    """
    if tls == SYSTEM_TLS:
        return _system_context(alpn)
    try:
        context = client_context(tls.authorities, tls.certificate, tls.key, tls.min_version)
    except ClientTlsRejected as error:
        path = "providers.models[].backend_refs[].tls"
        raise ConfigRejected([Problem(path, "cannot be used", str(error))]) from None
    return _offering(context, alpn)


@cache
def _system_context(alpn: Alpn) -> ssl.SSLContext:
    """Return the context of all backends without settings, for the life of the process."""
    return _offering(client_context(), alpn)


def _offering(context: ssl.SSLContext, alpn: Alpn) -> ssl.SSLContext:
    if alpn:
        context.set_alpn_protocols(list(alpn))
    return context
