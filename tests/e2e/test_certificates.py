"""Certificates and TLS of a listener change while processes serve."""

import re
import signal
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio
import trustme

from tests.e2e.process import ROUTER, Started, free_port, start
from tests.e2e.standalone import document
from tests.e2e.wire import RawClient, connect
from tests.e2e.workers import PATIENCE_S, WORKERS, command, end, pids, rewrite

NAME = "router.example"
HEALTH = b"GET /health HTTP/1.1\r\nHost: router\r\n\r\n"
_RELOADED = "standalone_listener_certificate_reloaded listener=public"
_FAILED = "standalone_listener_certificate_reload_failed listener=public"


def write_pair(authority: trustme.CA, folder: Path) -> None:
    """Write a certificate and its key."""
    issued = authority.issue_cert(NAME)
    issued.private_key_pem.write_to_path(str(folder / "tls.key"))
    (folder / "tls.crt").write_bytes(b"".join(pem.bytes() for pem in issued.cert_chain_pems))


@pytest.fixture
def first(tmp_path: Path) -> trustme.CA:
    """Return who has issued the certificate that the Router begins with."""
    authority = trustme.CA()
    write_pair(authority, tmp_path)
    return authority


@pytest.fixture
def config(tmp_path: Path, first: trustme.CA) -> Path:
    """Return a document with a TLS listener."""
    del first
    path = tmp_path / "router.yaml"
    text = document(port=free_port(), small=9, large=9)
    tls = "timeout: 30s, tls: {cert_file: tls.crt, key_file: tls.key}"
    path.write_text(text.replace("timeout: 30s", tls), encoding="utf-8")
    return path


@pytest.fixture(params=["one process", "workers"])
async def router(
    request: pytest.FixtureRequest, nursery: trio.Nursery, config: Path, tmp_path: Path
) -> AsyncIterator[Started]:
    """Start a Router; none of its processes outlives the test."""
    alone = [ROUTER, "--config", str(config), "--gateway", "standalone", "--metrics-port", "0"]
    how = [*alone, "--admin-address", "127.0.0.1:0"]
    started = await start(
        nursery, how if request.param == "one process" else command(config), tmp_path / "access.log"
    )
    yield started
    for pid in pids(started):
        end(pid)


async def is_served(port: int, authority: trustme.CA) -> bool:
    """Return whether a client that trusts `authority` alone is served over TLS."""
    context = ssl.create_default_context()
    authority.configure_trust(context)
    tcp = await trio.open_tcp_stream("127.0.0.1", port)
    stream = trio.SSLStream(tcp, context, server_hostname=NAME, https_compatible=True)
    try:
        await stream.send_all(HEALTH)
        return (await stream.receive_some()).startswith(b"HTTP/1.1 200")
    except trio.BrokenResourceError:
        return False
    finally:
        await tcp.aclose()


async def test_hangup_takes_up_a_new_certificate_at_once(
    router: Started, tmp_path: Path, first: trustme.CA
) -> None:
    """In every process, though the document is the same; a bad one leaves the old one."""
    processes = WORKERS if pids(router) else 1
    second = trustme.CA()

    with trio.fail_after(PATIENCE_S):
        before = await is_served(router.port, first)
        write_pair(second, tmp_path)
        router.send(signal.SIGHUP)
        await router.says(re.compile(f"(?s)(.*{_RELOADED}){{{processes}}}"))
        after = [
            (await is_served(router.port, first), await is_served(router.port, second))
            for _ in range(4)
        ]
        (tmp_path / "tls.key").write_text("no key")
        router.send(signal.SIGHUP)
        await router.says(re.compile(f"(?s)(.*{_FAILED}){{{processes}}}"))
        kept = [await is_served(router.port, second) for _ in range(4)]

    assert before
    assert after == [(False, True)] * 4
    assert kept == [True] * 4
    assert "version 3 serves" not in router.stderr


async def test_listener_ceases_and_begins_to_speak_tls(
    router: Started, config: Path, first: trustme.CA
) -> None:
    """Without a restart; who is connected in clear text has an answer yet, the last."""
    tls = ", tls: {cert_file: tls.crt, key_file: tls.key}"
    with trio.fail_after(PATIENCE_S):
        rewrite(config, tls, "")
        await router.says(re.compile("version 2 serves"))
        clear = await _health(await connect(router.port))
        silent = await connect(router.port)
        used = await connect(router.port)
        await used.send(HEALTH)
        await used.answer()
        rewrite(config, "timeout: 30s", f"timeout: 30s{tls}")
        await router.says(re.compile("version 3 serves"))
        encrypted = [await is_served(router.port, first) for _ in range(4)]
        last = [await _health(client) for client in (silent, used)]

    assert clear == (200, None)
    assert last == [(200, "close")] * 2
    assert encrypted == [True] * 4


async def _health(client: RawClient) -> tuple[int, str | None]:
    """Return the status and what is said of the connection."""
    with client:
        await client.send(HEALTH)
        answer = await client.answer()
    assert answer is not None
    return answer.status, answer.fields.get("connection")
