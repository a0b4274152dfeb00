"""`listeners[]`: the sockets that clients connect to. Defaults are the reference's."""

import attrs

from vsr.config.document.kinds import SECRET, Duration, Port, Positive


@attrs.frozen(repr=False, unsafe_hash=False)
class ListenerTls:
    """`listeners[].tls`; a path is relative to the document."""

    cert_file: str = ""
    key_file: str = ""


@attrs.frozen(repr=False, unsafe_hash=False)
class ListenerIdentity:
    """`listeners[].identity`: whose identity headers are kept; no peers means every peer."""

    trust_headers: bool = False
    trusted_peers: tuple[str, ...] = ()


@attrs.frozen(repr=False, unsafe_hash=False)
class ListenerSystemOne:
    """`listeners[].systemone`: the published decision API."""

    models: tuple[str, ...] = ()


@attrs.frozen(repr=False, unsafe_hash=False)
class Listener:
    """`listeners[]`."""

    name: str = ""
    address: str = ""
    port: Port = 0
    timeout: Duration = "300s"
    api_keys: tuple[str, ...] = attrs.field(default=(), repr=False, metadata=SECRET)
    models: tuple[str, ...] = ()
    tls: ListenerTls | None = None
    identity: ListenerIdentity | None = None
    systemone: ListenerSystemOne | None = None
    max_body_bytes: Positive = 524_288_000
    max_connections: Positive = 50_000
