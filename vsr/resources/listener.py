"""Resource `listener`: one client-facing socket and what it accepts."""

import attrs


@attrs.frozen
class ListenerTls:
    """Certificate and key of a TLS listener, PEM files."""

    cert_file: str
    """As authored; a relative path is relative to the document's folder."""
    key_file: str


@attrs.frozen
class Listener:
    """One listener of the document, normalised."""

    name: str
    address: str
    port: int
    timeout_s: float
    """Idle and head-read limit of client connections, and the default of every upstream call's
    total and idle timeout; 0 disables the latter two (connections then use 300 s)."""
    api_keys: tuple[bytes, ...] = attrs.field(default=(), repr=False)
    """Accepted client keys; empty means that no key is asked for."""
    max_body_bytes: int = 524_288_000
    """Limit of a request body. Source: the reference's listener limit, 500 MiB."""
    max_connections: int = 50_000
    """Open client connections; further ones wait in the accept queue. Source: as above."""
    tls: ListenerTls | None = None
    """None means clear text."""

    @property
    def connection_idle_s(self) -> float:
        """Return the idle limit of client connections."""
        return self.timeout_s or 300.0

    @property
    def call_timeout_s(self) -> float | None:
        """Return the default total and idle timeout of upstream calls; None means no limit."""
        return self.timeout_s or None
