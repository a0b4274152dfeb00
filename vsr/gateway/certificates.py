"""The certificates that listeners serve, loaded before their configuration does."""

from collections.abc import Sequence
from pathlib import Path

from vsr.errors import ConfigRejected, Problem
from vsr.network.tls_server import CertificateRejected, ServerCertificate
from vsr.resources.listener import Listener


def load_certificates(listeners: Sequence[Listener], folder: Path) -> dict[str, ServerCertificate]:
    """Load the certificates of all listeners that have one; blocks on the disk.

    Args:
        listeners: of the configuration.
        folder: where relative paths start.

    Raises:
        ConfigRejected: a pair cannot be served; every such listener is named.
    """
    certificates: dict[str, ServerCertificate] = {}
    problems: list[Problem] = []
    for listener in listeners:
        if listener.tls is None:
            continue
        cert_file, key_file = folder / listener.tls.cert_file, folder / listener.tls.key_file
        try:
            certificates[listener.name] = ServerCertificate(listener.name, cert_file, key_file)
        except CertificateRejected as error:
            path = f"listeners[{listener.name}].tls"
            mend = "give it a certificate chain and the key that belongs to it, both as PEM"
            problems.append(Problem(path, "its certificate cannot be served", str(error), mend))
    if problems:
        raise ConfigRejected(problems)
    return certificates
