"""Resource `backend_tls`: whom a TLS connection to a backend trusts, and who we say we are."""

from enum import StrEnum

import attrs


class TlsVersion(StrEnum):
    """Oldest version of TLS that is spoken, in OpenSSL's words."""

    TLS_1_2 = "TLSv1.2"
    TLS_1_3 = "TLSv1.3"


@attrs.frozen
class BackendTls:
    """Settings of TLS connections, but for the name that the backend's certificate must have.

    It holds what the files held when the document was loaded: a file that has other content since
    makes other settings, so that no connection is shared between the two.
    """

    authorities: bytes | None = attrs.field(default=None, repr=False)
    """Certificates that are trusted, PEM; None: those of the system."""
    certificate: bytes | None = attrs.field(default=None, repr=False)
    """Our own, with its chain, PEM; None: we show none."""
    key: bytes | None = attrs.field(default=None, repr=False)
    """Of our certificate, PEM; there exactly if that is."""
    min_version: TlsVersion = TlsVersion.TLS_1_2


SYSTEM_TLS = BackendTls()
"""Of a backend that configures none."""
