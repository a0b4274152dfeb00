"""The certificate of a listener: loaded, offered to new connections, reloaded when it changes."""

import logging
import ssl
from math import inf
from pathlib import Path

import msgspec

PROTOCOLS = ("h2", "http/1.1")
"""What is offered by ALPN, in order of preference."""
HANDSHAKE_TIMEOUT_S = 10.0
CHECK_EVERY_S = 1.0
"""Files are looked at no more often, and only when somebody connects."""
_CIPHERS_TLS_1_2 = "ECDHE+AESGCM:ECDHE+CHACHA20"
"""Forward-secret and authenticated; HTTP/2 forbids others. Source: RFC 9113 section 9.2."""
_RELOADED = "standalone_listener_certificate_reloaded listener=%s"
_log = logging.getLogger("vsr.network")


class CertificateRejected(Exception):
    """The pair cannot be served; says why in words that hold no key material."""


class _Stamp(msgspec.Struct, frozen=True):
    """What tells that a file has changed."""

    modified_ns: int
    size_bytes: int
    changed_ns: int
    """Of the kernel's own clock: a copy that keeps its date is seen, too."""
    file: tuple[int, int]
    """Device and inode: of a link that leads elsewhere by now."""


Stamps = tuple[_Stamp, _Stamp]


class ServerCertificate:
    """The certificate chain and key of one listener."""

    def __init__(self, listener: str, cert_file: Path, key_file: Path) -> None:
        """Load the pair.

        Raises:
            CertificateRejected: it cannot be read, or does not fit together.
        """
        self._listener = listener
        self._cert_file = cert_file
        self._key_file = key_file
        self._checked_at = -inf
        self._is_unreadable = False
        self._tried = self._stamp()
        self._context = self._load()

    def context(self, now: float) -> ssl.SSLContext:
        """Return what a new connection is to use, looking for a newer pair first.

        A pair that cannot be served leaves the old one in place; it is tried again when one of the
        files changes. Source: the reference's listener certificates.
        """
        if now - self._checked_at >= CHECK_EVERY_S:
            self._checked_at = now
            self._look()
        return self._context

    def reload(self) -> None:
        """Load the pair anew for connections to come; those that are open keep theirs.

        Raises:
            CertificateRejected: the old pair stays.
        """
        self._tried = self._stamp()
        self._context = self._load()

    def renew(self) -> None:
        """Do the same where somebody asks for it; the log says how it went."""
        try:
            self.reload()
        except CertificateRejected as error:
            self._report_failure(error)
        else:
            _log.info(_RELOADED, self._listener)

    def _look(self) -> None:
        try:
            stamps = self._stamp()
        except CertificateRejected as error:
            if not self._is_unreadable:
                self._is_unreadable = True
                self._report_failure(error)
            return
        self._is_unreadable = False
        if stamps == self._tried:
            return
        self.renew()

    def _report_failure(self, error: CertificateRejected) -> None:
        _log.error(
            "standalone_listener_certificate_reload_failed listener=%s error=%s",
            self._listener,
            error,
        )

    def _stamp(self) -> Stamps:
        return _stamp_of(self._cert_file), _stamp_of(self._key_file)

    def _load(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers(_CIPHERS_TLS_1_2)
        context.options |= ssl.OP_NO_RENEGOTIATION
        context.set_alpn_protocols(list(PROTOCOLS))
        try:
            context.load_cert_chain(self._cert_file, self._key_file, _no_password)
        except ssl.SSLError as error:
            raise CertificateRejected(error.reason or "not a certificate and its key") from None
        except OSError as error:
            raise CertificateRejected(error.strerror or "cannot be read") from None
        return context


def _stamp_of(file: Path) -> _Stamp:
    try:
        status = file.stat()
    except OSError as error:
        raise CertificateRejected(error.strerror or "cannot be read") from None
    place = status.st_dev, status.st_ino
    return _Stamp(status.st_mtime_ns, status.st_size, status.st_ctime_ns, place)


def _no_password() -> str:
    """Answer in place of the terminal, which OpenSSL would ask: keys with a password don't load."""
    return ""
