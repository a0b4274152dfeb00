"""TLS as the server: handshake, ends, and certificates that change."""

import logging
import os
import ssl
from pathlib import Path

import pytest
import trio
import trio.testing
import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from tests.network.ends import LOCALHOST, AnyNetwork, connected, read, read_all
from vsr.network.memory import MemoryNetwork
from vsr.network.port import ConnectionBroken, TlsFailed
from vsr.network.tls import TlsConnection, start_client_tls, start_server_tls
from vsr.network.tls_server import CHECK_EVERY_S, CertificateRejected, ServerCertificate

NAME = "router.example"
RELOADED = "standalone_listener_certificate_reloaded"
FAILED = "standalone_listener_certificate_reload_failed"


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    """Return a certificate authority."""
    return trustme.CA()


class Pair:
    """A certificate chain and its key in files."""

    def __init__(self, authority: trustme.CA, folder: Path) -> None:
        self.chain = folder / "tls.crt"
        self.key = folder / "tls.key"
        self.write(authority)

    def write(self, authority: trustme.CA, *, chain: bool = True, key: bool = True) -> None:
        """Write a new pair, or one half of it."""
        issued = authority.issue_cert(NAME)
        if chain:
            self.chain.write_bytes(b"".join(pem.bytes() for pem in issued.cert_chain_pems))
        if key:
            self.key.write_bytes(issued.private_key_pem.bytes())

    def load(self) -> ServerCertificate:
        """Return what a listener makes of it."""
        return ServerCertificate("public", self.chain, self.key)


@pytest.fixture
def pair(authority: trustme.CA, tmp_path: Path) -> Pair:
    """Return a pair."""
    return Pair(authority, tmp_path)


def client_context(authority: trustme.CA, *protocols: str) -> ssl.SSLContext:
    """Return a client context that trusts `authority`."""
    context = ssl.create_default_context()
    authority.configure_trust(context)
    if protocols:
        context.set_alpn_protocols(protocols)
    return context


async def shake_hands(
    network: AnyNetwork, client: ssl.SSLContext, server: ssl.SSLContext
) -> tuple[TlsConnection, TlsConnection]:
    """Open an encrypted connection; return the client's end and the server's."""
    listener = await network.listen(LOCALHOST, 0)
    near = await network.connect(LOCALHOST, listener.port)
    far = await listener.accept()
    listener.close()
    ends: list[TlsConnection] = []

    async def accept() -> None:
        ends.append(await start_server_tls(far, server))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(accept)
        ends.append(await start_client_tls(near, client, NAME))
    first, second = sorted(ends, key=lambda end: end._tls.server_side)
    return first, second


@pytest.mark.parametrize(
    ("offered", "chosen"),
    [((), None), (("h2", "http/1.1"), "h2"), (("http/1.1", "h2"), "h2"), (("h3",), None)],
)
async def test_protocol_is_agreed_on(
    offered: tuple[str, ...],
    chosen: str | None,
    network: AnyNetwork,
    authority: trustme.CA,
    pair: Pair,
) -> None:
    """By our preference; without anything in common the connection goes on."""
    context = pair.load().context(0.0)

    client, server = await shake_hands(network, client_context(authority, *offered), context)
    await client.send(b"ping")
    got = await read(server, 4)

    assert got == b"ping"
    assert (client.application_protocol, server.application_protocol) == (chosen, chosen)
    client.close()
    server.close()


def test_old_versions_of_tls_are_refused(authority: trustme.CA, pair: Pair) -> None:
    """1.2 at least, with ciphers that HTTP/2 allows."""
    context = pair.load().context(0.0)

    weak = {"RC4", "3DES", "CBC", "NULL", "MD5"}
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
    for cipher in context.get_ciphers():
        assert not any(word in cipher["description"] for word in weak)
        assert "Kx=RSA" not in cipher["description"]


async def test_client_is_told_why_the_handshake_failed(
    network: AnyNetwork, authority: trustme.CA, pair: Pair
) -> None:
    """By an alert, not by a lost connection."""
    context = pair.load().context(0.0)
    old = client_context(authority)
    old.minimum_version = ssl.TLSVersion.TLSv1_2
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    old.set_ciphers("AES128-SHA256")
    async with connected(network) as ends:
        failures: list[str] = []

        async def accept() -> None:
            with pytest.raises(TlsFailed) as caught:
                await start_server_tls(ends.far, context)
            failures.append(caught.value.reason)
            ends.far.close()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(accept)
            with pytest.raises(TlsFailed) as told:
                await start_client_tls(ends.near, old, NAME)

    assert failures == ["NO_SHARED_CIPHER"]
    assert "ALERT" in told.value.reason


async def test_closing_is_told_to_the_peer(
    network: AnyNetwork, authority: trustme.CA, pair: Pair
) -> None:
    """By half-closing, by closing and with data on its way; a reset or a cut is none."""
    context = pair.load().context(0.0)
    clients = []
    for how in (TlsConnection.close, TlsConnection.shutdown_send, TlsConnection.abort):
        client, server = await shake_hands(network, client_context(authority), context)
        await server.send(b"all of it")
        how(server)
        clients.append((client, server))

    for client, _ in clients[:2]:
        assert await read_all(client) == b"all of it"
    with pytest.raises(ConnectionBroken):
        await read_all(clients[2][0])
    for ends in clients:
        for end in ends:
            end.close()


async def test_send_that_was_cut_off_is_not_told_to_be_the_end(
    authority: trustme.CA, pair: Pair, autojump_clock: trio.testing.MockClock
) -> None:
    """The peer must not take half an answer for a whole one."""
    network = MemoryNetwork()
    context = pair.load().context(0.0)
    client, server = await shake_hands(network, client_context(authority), context)

    with trio.move_on_after(1):
        await server.send(bytes(1_000_000))
    server.close()

    with pytest.raises(ConnectionBroken):
        await read_all(client)
    client.close()


async def test_both_directions_are_used_at_once(
    network: AnyNetwork, authority: trustme.CA, pair: Pair
) -> None:
    """One task sends while another receives, on either side, with more than buffers hold."""
    context = pair.load().context(0.0)
    client, server = await shake_hands(network, client_context(authority), context)
    data = os.urandom(4096) * 512
    got: dict[str, bytes] = {}

    async def collect(name: str, end: TlsConnection) -> None:
        got[name] = await read(end, len(data))

    async with trio.open_nursery() as nursery:
        for name, end in (("client", client), ("server", server)):
            nursery.start_soon(end.send, data)
            nursery.start_soon(collect, name, end)

    assert got == {"client": data, "server": data}
    client.close()
    server.close()


def test_new_pair_is_taken_up(authority: trustme.CA, pair: Pair) -> None:
    """By the next connection, a second after the last look at the earliest."""
    certificate = pair.load()
    first = certificate.context(100.0)
    pair.write(authority)

    too_soon = certificate.context(100.0 + CHECK_EVERY_S / 2)
    in_time = certificate.context(100.0 + CHECK_EVERY_S)
    unchanged = certificate.context(200.0)

    assert too_soon is first
    assert in_time is not first
    assert unchanged is in_time


def test_context_of_open_connections_stays_theirs(authority: trustme.CA, pair: Pair) -> None:
    """A reload makes a new one; the old one is not touched."""
    certificate = pair.load()
    first = certificate.context(0.0)

    certificate.reload()

    assert certificate.context(0.1) is not first


def test_pair_of_the_same_size_and_date_is_noticed(
    authority: trustme.CA, pair: Pair, tmp_path: Path
) -> None:
    """As when a backup is put back with its dates, or a mounted link leads elsewhere."""
    certificate = pair.load()
    first = certificate.context(0.0)
    for file in (pair.chain, pair.key):
        status, copy = file.stat(), tmp_path / "copy"
        copy.write_bytes(file.read_bytes())
        os.utime(copy, ns=(status.st_atime_ns, status.st_mtime_ns))
        copy.replace(file)

    assert certificate.context(10.0) is not first


def test_pair_is_loaded_anew_at_once_where_somebody_asks(
    authority: trustme.CA, pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    """Without waiting for a client or a second; a bad one is told, and the old one stays."""
    caplog.set_level(logging.INFO)
    certificate = pair.load()
    first = certificate.context(0.0)

    certificate.renew()
    second = certificate.context(0.1)
    pair.key.write_text("no key")
    certificate.renew()

    assert second is not first
    assert certificate.context(0.2) is second
    told = [record.getMessage().partition(" error=")[0] for record in caplog.records]
    assert told == [f"{RELOADED} listener=public", f"{FAILED} listener=public"]


@pytest.mark.parametrize("half", ["chain", "key"])
def test_halves_that_do_not_fit_leave_the_old_pair(
    half: str, authority: trustme.CA, pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    """Files change one after the other; said once, and the whole pair is taken when it is there."""
    caplog.set_level(logging.INFO)
    certificate = pair.load()
    first = certificate.context(0.0)
    pair.write(authority, chain=half == "chain", key=half == "key")

    kept = [certificate.context(at) for at in (10.0, 20.0, 30.0)]
    said = [record.getMessage() for record in caplog.records]
    pair.write(authority)
    renewed = certificate.context(40.0)

    assert kept == [first] * 3
    assert len(said) == 1
    assert said[0].startswith(f"{FAILED} listener=public error=")
    assert renewed is not first
    assert caplog.records[-1].getMessage() == f"{RELOADED} listener=public"


def test_files_that_are_gone_are_reported_once_until_they_are_back(
    authority: trustme.CA, pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    """The old pair serves meanwhile."""
    certificate = pair.load()
    contents = pair.key.read_bytes()
    for at in (10.0, 30.0):
        before = certificate.context(at)
        pair.key.unlink()
        assert certificate.context(at + 5) is before
        assert certificate.context(at + 10) is before
        pair.key.write_bytes(contents)
        certificate.context(at + 15)

    failures = [record for record in caplog.records if FAILED in record.getMessage()]
    assert len(failures) == 2
    assert "No such file" in failures[0].getMessage()


def test_reload_refuses_a_bad_pair(authority: trustme.CA, pair: Pair) -> None:
    """And goes on with the old one."""
    certificate = pair.load()
    first = certificate.context(0.0)
    pair.key.write_text("no key")

    with pytest.raises(CertificateRejected):
        certificate.reload()

    assert certificate.context(0.1) is first


@pytest.mark.parametrize("fault", ["no chain", "no key", "not PEM", "other key", "password"])
def test_pair_that_cannot_be_served_is_refused_at_once(
    fault: str, authority: trustme.CA, pair: Pair, tmp_path: Path
) -> None:
    """The reason holds neither key material nor a path; nobody is asked for a password."""
    if fault == "no chain":
        pair.chain.unlink()
    elif fault == "no key":
        pair.key.unlink()
    elif fault == "not PEM":
        pair.chain.write_text("certificate")
    elif fault == "other key":
        pair.write(authority, chain=False)
    else:
        key = load_pem_private_key(pair.key.read_bytes(), None)
        locked = key.private_bytes(
            Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret")
        )
        pair.key.write_bytes(locked)

    with pytest.raises(CertificateRejected) as caught:
        pair.load()

    assert str(caught.value)
    assert str(tmp_path) not in str(caught.value)
