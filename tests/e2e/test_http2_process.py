"""The Router as a process of its own with a TLS listener, as the document says."""

import signal
import ssl
from pathlib import Path

import pytest
import trio
import trustme

from tests.e2e.process import ROUTER, free_port, run, start
from tests.fakes.backend import BACKEND_HOST

NAME = "router.example"
DOCUMENT = """\
version: v0.3
listeners:
  - name: public
    address: 127.0.0.1
    port: {port}
    tls: {{cert_file: {cert}, key_file: tls.key}}
providers:
  defaults: {{model: small}}
  models:
    - {{name: small, backend_refs: [{{endpoint: "127.0.0.1:9"}}]}}
routing: {{}}
"""
PATIENCE_S = 20.0


def write_pair(authority: trustme.CA, folder: Path) -> None:
    """Write a certificate and its key."""
    issued = authority.issue_cert(NAME)
    issued.private_key_pem.write_to_path(str(folder / "tls.key"))
    (folder / "tls.crt").write_bytes(b"".join(pem.bytes() for pem in issued.cert_chain_pems))


def write_document(folder: Path, cert: str = "tls.crt") -> Path:
    """Write a document with a TLS listener whose files stand beside it."""
    document = folder / "router.yaml"
    document.write_text(DOCUMENT.format(port=free_port(), cert=cert))
    return document


async def ask_health(port: int, authority: trustme.CA) -> bytes:
    """Return what `/health` answers over TLS to who trusts `authority`."""
    context = ssl.create_default_context()
    authority.configure_trust(context)
    tcp = await trio.open_tcp_stream(BACKEND_HOST, port)
    tls = trio.SSLStream(tcp, context, server_hostname=NAME, https_compatible=True)
    async with tls:
        await tls.send_all(b"GET /health HTTP/1.1\r\nHost: r\r\nConnection: close\r\n\r\n")
        return b"".join([data async for data in tls])


async def test_tls_listener_serves_and_takes_up_a_new_certificate(
    nursery: trio.Nursery, tmp_path: Path
) -> None:
    """Paths are the document's; no restart is needed."""
    first, second = trustme.CA(), trustme.CA()
    write_pair(first, tmp_path)
    router = await start(
        nursery,
        [ROUTER, "--config", str(write_document(tmp_path)), "--gateway", "standalone"],
        tmp_path / "log",
    )

    with trio.fail_after(PATIENCE_S):
        before = await ask_health(router.port, first)
        write_pair(second, tmp_path)
        await trio.sleep(1.1)
        after = await ask_health(router.port, second)
    router.send(signal.SIGTERM)
    await router.process.wait()

    assert before.endswith(b'{"status":"ok"}')
    assert after.endswith(b'{"status":"ok"}')
    assert router.process.returncode == 0


@pytest.mark.parametrize("cert", ["missing.crt", "tls.key"])
async def test_certificate_that_cannot_be_served_stops_the_start(cert: str, tmp_path: Path) -> None:
    """Nothing is ever served in clear text in its place."""
    write_pair(trustme.CA(), tmp_path)

    done = await run(
        [ROUTER, "--config", str(write_document(tmp_path, cert)), "--gateway", "standalone"]
    )

    assert done.returncode != 0
    assert b"listeners[public].tls: its certificate cannot be served" in done.stderr
