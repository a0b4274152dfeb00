"""What TLS connections to backends are made with: whom to trust, and our own certificate."""

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager

_WHAT_A_FILE_IS = "/proc/self/fd/{}"


class ClientTlsRejected(Exception):
    """TLS settings cannot be used; says why in words that hold nothing of them."""


class AuthoritiesRejected(ClientTlsRejected):
    """The trusted certificates are at fault."""


class CertificateRejected(ClientTlsRejected):
    """Our certificate is at fault."""


class KeyRejected(ClientTlsRejected):
    """The key is at fault, or is not that of our certificate."""


def client_context(
    authorities: bytes | None = None,
    certificate: bytes | None = None,
    key: bytes | None = None,
    min_version: str = "TLSv1.2",
) -> ssl.SSLContext:
    """Return a context that checks the other side's certificate and name.

    Args:
        authorities: PEM certificates that are trusted in place of the system's.
        certificate: PEM chain that we show if we are asked for it; `key` comes with it.
        key: its PEM key, not encrypted.
        min_version: oldest version that is spoken, `TLSv1.2` or `TLSv1.3`.

    Raises:
        ClientTlsRejected: that part cannot be used which the class names.
    """
    context = ssl.create_default_context() if authorities is None else _trusting(authorities)
    context.minimum_version = ssl.TLSVersion[min_version.replace(".", "_")]
    if certificate is not None and key is not None:
        _identify(context, certificate, key)
    return context


def check_authorities(authorities: bytes | None) -> None:
    """Raise what `client_context` would because of them."""
    if authorities is not None:
        _trusting(authorities)


def check_identity(certificate: bytes, key: bytes) -> None:
    """Raise what `client_context` would because of them."""
    _identify(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), certificate, key)


def _trusting(authorities: bytes) -> ssl.SSLContext:
    with _as_file(authorities) as file:
        try:
            context = ssl.create_default_context(cafile=file)
        except ssl.SSLError:
            raise AuthoritiesRejected("it holds no certificate in PEM, or a broken one") from None
    if not context.cert_store_stats()["x509"]:
        raise AuthoritiesRejected("it holds no certificate")
    return context


def _identify(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    with _as_file(certificate) as certificate_file, _as_file(key) as key_file:
        # Apart from the key, which the error of both together could as well be about.
        scratch = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        try:
            scratch.load_verify_locations(cafile=certificate_file)
        except ssl.SSLError:
            raise CertificateRejected("it holds no certificate in PEM, or a broken one") from None
        try:
            context.load_cert_chain(certificate_file, key_file, _no_password)
        except ssl.SSLError as error:
            raise KeyRejected(_why_no_key(error, key)) from None


def _why_no_key(error: ssl.SSLError, key: bytes) -> str:
    if error.reason == "KEY_VALUES_MISMATCH":
        return "it does not belong to the certificate"
    if b"ENCRYPTED" in key:
        return "it is encrypted, and nobody is there to give its password"
    if b"PRIVATE KEY-----" not in key:
        return "it holds no key in PEM"
    return "it is broken, or of a kind that is not known"


@contextmanager
def _as_file(content: bytes) -> Iterator[str]:
    """Give a name to `content` for as long as it is needed: OpenSSL's key loader takes names only.

    It never leaves memory; what was on disk may have changed since it was read.
    """
    descriptor = os.memfd_create("vsr-tls")
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        yield _WHAT_A_FILE_IS.format(descriptor)


def _no_password() -> str:
    """Answer in place of the terminal, which OpenSSL would ask."""
    return ""
