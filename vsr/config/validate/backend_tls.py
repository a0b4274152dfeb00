"""Checks of `providers.models[].backend_refs[].tls` and of the files that it names."""

from vsr.config.address import is_host
from vsr.config.attempt import Code
from vsr.config.backend import Backend
from vsr.config.document.providers import BackendRefTls
from vsr.config.files import FileRefused
from vsr.config.position import Path
from vsr.config.report import Report

MAX_PEM_BYTES = 4 * 1024 * 1024
"""Of one file; the bundle of a whole system is a quarter of a megabyte."""


def check_backend_tls(
    tls: BackendRefTls, backend: Backend | None, path: Path, report: Report
) -> None:
    """The backend is reached by TLS, and OpenSSL can use all the files.

    Args:
        tls: as authored.
        backend: that it stands at; None if that is at fault itself.
        path: of `tls`.
        report: gets every problem; it keeps what the files hold.
    """
    if backend is not None and backend.address.scheme != "https":
        why = "its connections are not encrypted"
        report.add(path, "stands at a cleartext backend", why, "write https, or remove it")
    if tls.server_name is not None and not _is_server_name(tls.server_name):
        mend = "write a DNS name or an IP address that is in the backend's certificate"
        report.add((*path, "server_name"), "is no name of a server", mend=mend)
    for key, other in (("cert_file", "key_file"), ("key_file", "cert_file")):
        if getattr(tls, key) is not None and getattr(tls, other) is None:
            why = f"{key} is given, and neither is of use without the other"
            report.add((*path, other), "is missing", why, "add it")
    authorities = _read(tls.ca_file, (*path, "ca_file"), report)
    certificate = _read(tls.cert_file, (*path, "cert_file"), report)
    key_content = _read(tls.key_file, (*path, "key_file"), report)
    _check_contents(authorities, certificate, key_content, path, report)


def _is_server_name(text: str) -> bool:
    # OpenSSL compares without a final dot.
    return is_host(text) and not text.endswith(".")


def _read(name: str | None, path: Path, report: Report) -> bytes | None:
    if name is None or report.is_broken(path):
        return None
    try:
        return report.files.read(name, MAX_PEM_BYTES)
    except FileRefused as error:
        what = f"{report.quote(path)} can't be used"
        report.add(path, what, error.why, error.mend, code=Code.ARTIFACT_UNAVAILABLE)
    return None


def _check_contents(
    authorities: bytes | None,
    certificate: bytes | None,
    key: bytes | None,
    path: Path,
    report: Report,
) -> None:
    if authorities is None and (certificate is None or key is None):
        return
    # Here, since few documents have any and loading OpenSSL takes as long as reading many.
    from vsr.network import tls_client  # noqa: PLC0415

    try:
        tls_client.check_authorities(authorities)
    except tls_client.AuthoritiesRejected as error:
        mend = "give it certificates in PEM"
        report.add((*path, "ca_file"), "is no list of trusted certificates", str(error), mend)
    if certificate is None or key is None:
        return
    try:
        tls_client.check_identity(certificate, key)
    except tls_client.CertificateRejected as error:
        mend = "give it a certificate and its chain in PEM"
        report.add((*path, "cert_file"), "is no certificate", str(error), mend)
    except tls_client.KeyRejected as error:
        mend = "give it the key of the certificate in PEM, not encrypted"
        report.add((*path, "key_file"), "can't be used with the certificate", str(error), mend)
