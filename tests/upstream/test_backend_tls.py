"""TLS to backends: each is trusted, asked and shown what its own settings say."""

import datetime
import ssl
from itertools import count
from pathlib import Path

import pytest
import trio
import trio.testing

from tests.fakes.router import clusters_of
from tests.faults.moments import request_of
from tests.faults.test_every_step import AfterStep
from tests.network.ends import send_ignoring_breakage
from tests.upstream.raw_backend import RawBackend
from tests.upstream.scenes import read_on
from tests.upstream.tls_scene import (
    CALL,
    NAME,
    NOTHING,
    OK,
    OURS,
    THEIRS,
    TlsScene,
    load,
    one_backend,
    ref_of,
    remove_files,
    server_context,
    start_tls_backend,
    write_authority,
    write_identity,
)
from vsr.network.memory import MemoryNetwork

REFUSED = "TLS_error:|CERTIFICATE_VERIFY_FAILED:TLS_error_end"


async def test_authority_of_a_file_is_trusted(
    nursery: trio.Nursery, tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    """In place of the system's; the handshake is made once for many calls."""
    scene, backend = await one_backend(nursery, tmp_path, server_context(OURS.issue_cert(NAME)))

    for _ in range(3):
        assert (await scene.ask()).status == 200

    assert len(backend.shaken) == 1
    assert await scene.held() == NOTHING


FAULTS = {
    "another authority": lambda: server_context(THEIRS.issue_cert(NAME)),
    "another name": lambda: server_context(OURS.issue_cert("other.test")),
    "expired": lambda: server_context(
        OURS.issue_cert(NAME, not_after=datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC))
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_certificate_that_does_not_hold_gets_no_request(
    fault: str, nursery: trio.Nursery, tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    """Not one byte of it, and the client reads OpenSSL's word, no names and no addresses."""
    scene, backend = await one_backend(nursery, tmp_path, FAULTS[fault]())

    got = await scene.ask()

    assert got.status == 503
    assert REFUSED.encode() in got.body
    assert b"test" not in got.body
    assert await scene.last_line() == ("UF", 1)
    assert (backend.shaken, backend.seen, backend.open_connections) == ([], [], 0)
    assert await scene.held() == NOTHING


@pytest.mark.parametrize("name", ["other.test", "10.9.8.7"])
async def test_certificate_is_checked_against_the_configured_name(
    name: str, nursery: trio.Nursery, tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    """A DNS name, which the backend is asked for as well, or an IP address."""
    asked: list[str | None] = []
    context = server_context(OURS.issue_cert(name))
    context.sni_callback = lambda _, sni, __: asked.append(sni)
    scene, _ = await one_backend(nursery, tmp_path, context, f"server_name: {name}")

    got = await scene.ask()

    assert got.status == 200
    assert asked == [name if name.endswith("test") else None]


async def test_backend_at_an_address_needs_no_name_of_its_own(
    nursery: trio.Nursery, tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    """The certificate is checked against the configured name; the `Host` is the address."""
    network = MemoryNetwork()
    backend = await start_tls_backend(nursery, network, server_context(OURS.issue_cert(NAME)))
    tls = f"{write_authority(OURS, tmp_path, 'ca')}, server_name: {NAME}"
    snapshot = load(tmp_path, [ref_of(backend.port, tls, host="10.0.0.7")])
    scene = await TlsScene.start(nursery, network, snapshot)

    assert (await scene.ask()).status == 200

    [(head, _)] = backend.seen
    assert head.authority == b"10.0.0.7:%d" % backend.port


async def test_backend_that_asks_gets_our_certificate(
    nursery: trio.Nursery, tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    """The configured one."""
    identity = write_identity(OURS.issue_cert("router.test"), tmp_path, "router")
    context = server_context(OURS.issue_cert(NAME), asks=OURS)
    scene, backend = await one_backend(nursery, tmp_path, context, identity)

    assert (await scene.ask()).status == 200

    shown = backend.shaken[0]._tls.getpeercert()
    assert shown is not None
    assert ("DNS", "router.test") in shown["subjectAltName"]


@pytest.mark.parametrize("who", ["nobody", "somebody else"])
@pytest.mark.parametrize("newest", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_backend_that_asks_turns_strangers_down(
    who: str,
    newest: ssl.TLSVersion,
    nursery: trio.Nursery,
    tmp_path: Path,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """In the handshake, or with TLS 1.3 right behind it; either way it serves no request."""
    identity = ""
    if who == "somebody else":
        identity = write_identity(THEIRS.issue_cert("router.test"), tmp_path, "router")
    context = server_context(OURS.issue_cert(NAME), asks=OURS)
    context.maximum_version = newest
    scene, backend = await one_backend(nursery, tmp_path, context, identity)

    got = await scene.ask()

    in_handshake = newest is ssl.TLSVersion.TLSv1_2
    assert got.status == 503
    assert (b"TLS_error" in got.body) is in_handshake
    assert await scene.last_line() == ("UF" if in_handshake else "UC", 1)
    assert backend.seen == []
    assert await scene.held() == NOTHING


@pytest.mark.parametrize(("oldest", "status"), [("TLSv1.2", 200), ("TLSv1.3", 503)])
async def test_version_older_than_the_oldest_is_not_spoken(
    oldest: str,
    status: int,
    nursery: trio.Nursery,
    tmp_path: Path,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """With a backend that has nothing newer than TLS 1.2."""
    context = server_context(OURS.issue_cert(NAME))
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    scene, _ = await one_backend(nursery, tmp_path, context, f"min_version: {oldest}")

    assert (await scene.ask()).status == status


async def test_backends_of_one_model_have_settings_of_their_own(
    nursery: trio.Nursery, tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    """Authority, name and client certificate of one are of no use with the other."""
    network = MemoryNetwork()
    one = await start_tls_backend(nursery, network, server_context(OURS.issue_cert("one.test")))
    two = await start_tls_backend(
        nursery, network, server_context(THEIRS.issue_cert("two.test"), asks=OURS)
    )
    identity = write_identity(OURS.issue_cert("router.test"), tmp_path, "router")
    refs = [
        ref_of(one.port, write_authority(OURS, tmp_path, "ours"), host="one.test"),
        ref_of(
            two.port,
            f"{write_authority(THEIRS, tmp_path, 'theirs')}, {identity}, server_name: two.test",
        ),
    ]
    scene = await TlsScene.start(nursery, network, load(tmp_path, refs))

    statuses = [(await scene.ask()).status for _ in range(4)]

    assert statuses == [200] * 4
    assert [len(each.seen) for each in (one, two)] == [2, 2]
    assert [len(each.shaken) for each in (one, two)] == [1, 1]


async def test_failed_handshake_is_tried_again_elsewhere(
    nursery: trio.Nursery, tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    """It proves that nothing was done, so that no evidence stands against it; without a wait."""
    network = MemoryNetwork()
    bad = await start_tls_backend(nursery, network, server_context(THEIRS.issue_cert(NAME)))
    good = await start_tls_backend(nursery, network, server_context(OURS.issue_cert(NAME)))
    tls = write_authority(OURS, tmp_path, "ca")
    snapshot = load(
        tmp_path,
        [ref_of(each.port, tls) for each in (bad, good)],
        reliability="retry_count: 1, retry_evidence: known_zero",
    )
    scene = await TlsScene.start(nursery, network, snapshot)

    for _ in range(4):
        assert (await scene.ask()).status == 200

    assert trio.current_time() == 0
    assert len(good.seen) == 4
    assert bad.accepted
    assert bad.open_connections == 0
    assert await scene.held() == NOTHING


async def test_connect_timeout_covers_the_handshake(
    nursery: trio.Nursery, tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    """Of a backend that takes connections and says nothing."""
    scene, backend = await one_backend(nursery, tmp_path, None)

    got = await scene.ask()

    assert got.status == 503
    assert trio.current_time() == pytest.approx(10)
    assert b"connection timeout" in got.body
    assert backend.open_connections == 0
    assert await scene.held() == NOTHING


@pytest.mark.parametrize("how", ["close", "abort", "shutdown_send"])
async def test_client_that_leaves_in_a_handshake_ends_it_at_once(
    how: str, nursery: trio.Nursery, tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    """The backend sees its connection closed, and nothing is held."""
    scene, backend = await one_backend(nursery, tmp_path, None)
    client = await scene.router.connect()
    await client.send(request_of(CALL))
    await trio.sleep(1)
    assert backend.open_connections == 1

    getattr(client, how)()

    assert await scene.held() == NOTHING
    assert (backend.open_connections, backend.gone_at) == (0, [1])


async def _leave_behind_step(
    step: int, folder: Path, context: ssl.SSLContext, moments: set[tuple[int, int]]
) -> bool:
    """Leave behind a step of a call; return whether it got there. `moments` gets what was done."""
    async with trio.open_nursery() as nursery:
        scene, backend = await one_backend(nursery, folder, context)
        client = await scene.router.connect()
        await trio.testing.wait_all_tasks_blocked()

        def leave() -> None:
            moments.add((len(backend.accepted), len(backend.shaken)))
            client.close()

        instrument = AfterStep(step, leave)
        trio.lowlevel.add_instrument(instrument)
        nursery.start_soon(send_ignoring_breakage, client, request_of(CALL))
        nursery.start_soon(read_on, client)
        await trio.sleep(0.1)
        trio.lowlevel.remove_instrument(instrument)
        client.close()
        assert await scene.held() == NOTHING
        clusters_of(scene.router.generation).close()
        await trio.testing.wait_all_tasks_blocked()
        assert scene.router.network.open_connections == 0
        nursery.cancel_scope.cancel()
    return instrument.count >= step


def test_client_may_leave_behind_any_step_of_a_first_call(tmp_path: Path) -> None:
    """From connecting over each flight of the handshake to the answer: no connection is left."""
    context = server_context(OURS.issue_cert(NAME))
    moments: set[tuple[int, int]] = set()
    for step in count(1):
        clock = trio.testing.MockClock(autojump_threshold=0)
        if not trio.run(_leave_behind_step, step, tmp_path, context, moments, clock=clock):
            break
    assert moments == {(0, 0), (1, 0), (1, 1)}


async def test_files_are_read_with_the_document_alone(
    nursery: trio.Nursery, tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    """A connection is made with what was checked, though the files are gone."""
    context = server_context(OURS.issue_cert(NAME), asks=OURS)
    identity = write_identity(OURS.issue_cert("router.test"), tmp_path, "router")
    scene, _ = await one_backend(nursery, tmp_path, context, identity)
    remove_files(tmp_path)

    assert (await scene.ask()).status == 200


async def test_health_checks_go_by_the_settings_of_their_endpoint(
    nursery: trio.Nursery, tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    """The one whose certificate does not hold is not well."""
    network = MemoryNetwork()
    bad = await start_tls_backend(nursery, network, server_context(THEIRS.issue_cert(NAME)))
    good = await start_tls_backend(nursery, network, server_context(OURS.issue_cert(NAME)))
    clear = await RawBackend(network, OK).start(nursery)
    tls = write_authority(OURS, tmp_path, "ca")
    refs = [ref_of(each.port, tls) for each in (bad, good)]
    scene = await TlsScene.start(
        nursery, network, load(tmp_path, refs, reliability="health_check_path: /health")
    )

    [state] = clusters_of(scene.router.generation).states.values()

    assert [host.is_healthy for host in state.hosts] == [False, True]
    assert clear.seen == []
    assert [(await scene.ask()).status for _ in range(3)] == [200] * 3
