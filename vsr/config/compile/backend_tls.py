"""TLS settings of backends."""

from collections.abc import Mapping

from vsr.config.document.providers import BackendRefTls
from vsr.resources.backend_tls import SYSTEM_TLS, BackendTls, TlsVersion


def backend_tls(tls: BackendRefTls | None, files: Mapping[str, bytes]) -> BackendTls:
    """Return the settings of one backend.

    Args:
        tls: as authored, found valid.
        files: what every file holds that it names.
    """
    if tls is None:
        return SYSTEM_TLS
    return BackendTls(
        authorities=None if tls.ca_file is None else files[tls.ca_file],
        certificate=None if tls.cert_file is None else files[tls.cert_file],
        key=None if tls.key_file is None else files[tls.key_file],
        min_version=TlsVersion(tls.min_version),
    )
