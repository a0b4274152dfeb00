"""From the TLS settings of a backend to what its connections are made with."""

import ssl
from functools import cache

from vsr.errors import ConfigRejected, Problem
from vsr.network.tls_client import ClientTlsRejected, client_context
from vsr.resources.backend_tls import SYSTEM_TLS, BackendTls


def backend_context(tls: BackendTls) -> ssl.SSLContext:
    """Return a context for connections with these settings.

    Raises:
        ConfigRejected: OpenSSL cannot use them; loading the document asked it the same before.
    """
    if tls == SYSTEM_TLS:
        return _system_context()
    try:
        return client_context(tls.authorities, tls.certificate, tls.key, tls.min_version)
    except ClientTlsRejected as error:
        path = "providers.models[].backend_refs[].tls"
        raise ConfigRejected([Problem(path, "cannot be used", str(error))]) from None


@cache
def _system_context() -> ssl.SSLContext:
    """Return the context of all backends without settings, for the life of the process."""
    return client_context()
