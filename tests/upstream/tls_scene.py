"""Backends that speak TLS on a network in memory, and documents that name certificates."""

import ssl
from collections.abc import Sequence
from pathlib import Path

import attrs
import trio
import trustme

from tests.demo.raw_client import Got, chat_body
from tests.fakes.router import RunningRouter, clusters_of, start_router
from tests.upstream.raw_backend import RawBackend, reply
from vsr.config.source import load_snapshot
from vsr.network.memory import MemoryConnection, MemoryNetwork
from vsr.network.port import TlsFailed
from vsr.network.tls import TlsConnection, start_server_tls
from vsr.resources.snapshot import Snapshot

OURS, THEIRS = trustme.CA(), trustme.CA()
"""An authority that documents trust, and another one."""
NAME = "backend.test"
NOTHING = dict.fromkeys(("leases", "connections", "hosts", "slots"), 0)
OK = reply(200, b"{}")
CALL = chat_body(model="auto")


def server_context(issued: trustme.LeafCert, asks: trustme.CA | None = None) -> ssl.SSLContext:
    """Return the context of a backend; it asks for a certificate of the authority `asks`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    issued.configure_cert(context)
    if asks is not None:
        asks.configure_trust(context)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


@attrs.define(eq=False)
class TlsBackend(RawBackend):
    """Shakes hands before it answers; `start` it in a nursery."""

    context: ssl.SSLContext | None = attrs.field(kw_only=True)
    """None never answers a handshake."""
    shaken: list[TlsConnection] = attrs.field(factory=list, init=False)
    """The connections whose handshake was done."""

    async def _serve(self, connection: MemoryConnection) -> None:
        if self.context is None:
            await trio.sleep_forever()
            return
        try:
            tls = await start_server_tls(connection, self.context)
        except TlsFailed:
            connection.close()
            return
        self.shaken.append(tls)
        await super()._serve(tls)  # type: ignore[arg-type]  # a connection like any other


async def start_tls_backend(
    nursery: trio.Nursery, network: MemoryNetwork, context: ssl.SSLContext | None
) -> TlsBackend:
    """Start a backend that answers every request with an empty object."""
    backend = TlsBackend(network, OK, context=context)
    await backend.start(nursery)
    return backend


def write_identity(issued: trustme.LeafCert, folder: Path, stem: str) -> str:
    """Write a certificate and its key to files; return the keys of `tls` that name them."""
    chain = b"".join(pem.bytes() for pem in issued.cert_chain_pems)
    (folder / f"{stem}.pem").write_bytes(chain)
    (folder / f"{stem}.key").write_bytes(issued.private_key_pem.bytes())
    return f"cert_file: {stem}.pem, key_file: {stem}.key"


def write_authority(authority: trustme.CA, folder: Path, stem: str) -> str:
    """Write an authority's certificate to a file; return the key of `tls` that names it."""
    (folder / f"{stem}.pem").write_bytes(authority.cert_pem.bytes())
    return f"ca_file: {stem}.pem"


def remove_files(folder: Path) -> None:
    """Remove everything in a folder without subfolders."""
    for file in folder.iterdir():
        file.unlink()


def ref_of(port: int, tls: str, *, host: str = NAME) -> str:
    """Return a backend ref; `tls` without its braces."""
    return f"{{base_url: 'https://{host}:{port}', tls: {{{tls}}}}}"


def load(folder: Path, refs: Sequence[str], *, reliability: str = "", more: str = "") -> Snapshot:
    """Return a document in `folder` whose one model has these backends.

    Args:
        folder: relative paths start there.
        refs: of the model.
        reliability: of the model, without its braces.
        more: further models, each after a line break and a dash, or further blocks.
    """
    file = folder / "config.yaml"
    file.write_text(
        "listeners: [{name: http, address: 127.0.0.1, port: 8899}]\n"
        "providers:\n  defaults: {model: alpha}\n  models:\n"
        f"    - {{name: alpha, reliability: {{{reliability}}}, backend_refs: [{', '.join(refs)}]}}"
        f"{more}\n"
    )
    return load_snapshot(file, {})


@attrs.frozen
class TlsScene:
    """A Router whose backends speak TLS."""

    router: RunningRouter

    @classmethod
    async def start(
        cls, nursery: trio.Nursery, network: MemoryNetwork, snapshot: Snapshot
    ) -> "TlsScene":
        """Start it."""
        return cls(await start_router(nursery, network, snapshot))

    async def ask(self, body: bytes = CALL) -> Got:
        """Send one request and read its answer."""
        return await self.router.ask(body)

    async def last_line(self) -> tuple[str, int]:
        """Return response flag and attempts of the last request."""
        line = (await self.router.log())[-1]
        return line["response_flags"], line["attempts"]

    async def held(self) -> dict[str, int]:
        """Return what all calls hold, once nothing moves."""
        states = clusters_of(self.router.generation).states.values()
        leases, connections = await self.router.held()
        return {
            "leases": leases,
            "connections": connections,
            "hosts": sum(host.active for state in states for host in state.hosts),
            "slots": sum(state.slots.taken for state in states),
        }


async def one_backend(
    nursery: trio.Nursery, folder: Path, context: ssl.SSLContext | None, tls: str = ""
) -> tuple[TlsScene, TlsBackend]:
    """Start a Router over one backend; further members of its `tls` may be given."""
    network = MemoryNetwork()
    backend = await start_tls_backend(nursery, network, context)
    trusted = write_authority(OURS, folder, "ca")
    ref = ref_of(backend.port, f"{trusted}, {tls}" if tls else trusted)
    return await TlsScene.start(nursery, network, load(folder, [ref])), backend
