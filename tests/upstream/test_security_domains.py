"""Which connections to backends are shared: those of one security domain, reloads included."""

from pathlib import Path

import pytest
import trio
import trio.testing

from tests.fakes.router import clusters_of
from tests.upstream.tls_scene import (
    CALL,
    NAME,
    OURS,
    TlsScene,
    load,
    one_backend,
    ref_of,
    server_context,
    start_tls_backend,
    write_authority,
    write_identity,
)
from vsr.network.memory import MemoryNetwork
from vsr.upstream.dialer import DomainDialer


@pytest.mark.parametrize(("tls", "connections"), [("", 1), ("min_version: TLSv1.3", 2)])
async def test_connections_are_shared_within_one_domain_only(
    tls: str,
    connections: int,
    nursery: trio.Nursery,
    tmp_path: Path,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Two models at one host and port: with the same settings, and with others."""
    network = MemoryNetwork()
    backend = await start_tls_backend(nursery, network, server_context(OURS.issue_cert(NAME)))
    trusted = write_authority(OURS, tmp_path, "ca")
    other = ref_of(backend.port, f"{trusted}, {tls}" if tls else trusted)
    more = f"\n    - {{name: beta, backend_refs: [{other}]}}"
    snapshot = load(tmp_path, [ref_of(backend.port, trusted)], more=more)
    scene = await TlsScene.start(nursery, network, snapshot)

    for model in ("alpha", "beta", "alpha", "beta"):
        assert (await scene.ask(CALL.replace(b"auto", model.encode()))).status == 200

    assert len(backend.shaken) == connections


async def test_model_with_cleartext_settings_never_gets_a_tls_connection(
    nursery: trio.Nursery, tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    """Nor the other way round, at one host and port."""
    network = MemoryNetwork()
    backend = await start_tls_backend(nursery, network, server_context(OURS.issue_cert(NAME)))
    clear = f"{{base_url: 'http://{NAME}:{backend.port}'}}"
    more = f"\n    - {{name: beta, backend_refs: [{clear}]}}"
    tls = write_authority(OURS, tmp_path, "ca")
    scene = await TlsScene.start(
        nursery, network, load(tmp_path, [ref_of(backend.port, tls)], more=more)
    )
    await scene.ask()

    got = await scene.ask(CALL.replace(b"auto", b"beta"))

    assert got.status == 503
    assert len(backend.accepted) == 2
    assert len(backend.seen) == 1


@pytest.mark.parametrize("changes", [False, True])
async def test_renewed_file_is_taken_up_with_the_next_configuration(
    changes: bool,  # noqa: FBT001  # a case
    nursery: trio.Nursery,
    tmp_path: Path,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Its connections are new ones; as long as the content is the same, the old ones go on."""
    context = server_context(OURS.issue_cert(NAME), asks=OURS)
    identity = write_identity(OURS.issue_cert("first.test"), tmp_path, "router")
    scene, backend = await one_backend(nursery, tmp_path, context, identity)
    await scene.ask()
    ref = ref_of(backend.port, f"ca_file: ca.pem, {identity}")
    if changes:
        write_identity(OURS.issue_cert("second.test"), tmp_path, "router")
    first = scene.router.generation

    assert (await scene.ask()).status == 200
    assert len(backend.shaken) == 1
    scene.router.activate(load(tmp_path, [ref], more="\nevaluation: {}"), 2)
    assert (await scene.ask()).status == 200

    names = [dict(each._tls.getpeercert() or {})["subjectAltName"] for each in backend.shaken]
    wanted = ["first.test", "second.test"] if changes else ["first.test"]
    assert names == [(("DNS", name),) for name in wanted]
    assert backend.open_connections == 1
    kept = clusters_of(scene.router.generation)
    assert (kept.contexts == clusters_of(first).contexts) is not changes


async def test_context_is_made_once_for_all_names(
    nursery: trio.Nursery, tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    """Pools of several names under the same files share it."""
    tls = write_authority(OURS, tmp_path, "ca")
    refs = [ref_of(1, tls, host=f"{name}.test") for name in "abc"]
    scene = await TlsScene.start(nursery, MemoryNetwork(), load(tmp_path, refs))

    pools = clusters_of(scene.router.generation).pools.values()

    dialers = [each.dialer for each in pools]
    assert all(isinstance(each, DomainDialer) for each in dialers)
    assert len(dialers) == 3
    assert len({id(each.context) for each in dialers if isinstance(each, DomainDialer)}) == 1
