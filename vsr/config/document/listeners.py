"""`listeners[]`: the sockets that clients connect to. Defaults are the reference's."""

from typing import Annotated

from vsr.config.document.kinds import Duration, Port, Positive
from vsr.config.document.objects import SECRET, DocumentObject


class ListenerTls(DocumentObject, frozen=True):
    """`listeners[].tls`; a path is relative to the document."""

    cert_file: str = ""
    key_file: str = ""


class ListenerIdentity(DocumentObject, frozen=True):
    """`listeners[].identity`: whose identity headers are kept; no peers means every peer."""

    trust_headers: bool = False
    trusted_peers: tuple[str, ...] = ()


class ListenerSystemOne(DocumentObject, frozen=True):
    """`listeners[].systemone`: the published decision API."""

    models: tuple[str, ...] = ()


class Listener(DocumentObject, frozen=True):
    """`listeners[]`."""

    name: str = ""
    address: str = ""
    port: Port = 0
    timeout: Duration = "300s"
    api_keys: Annotated[tuple[str, ...], SECRET] = ()
    models: tuple[str, ...] = ()
    tls: ListenerTls | None = None
    identity: ListenerIdentity | None = None
    systemone: ListenerSystemOne | None = None
    max_body_bytes: Positive = 524_288_000
    max_connections: Positive = 50_000
