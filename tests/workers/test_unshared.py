"""What several workers may not each keep to themselves."""

from vsr.resources.looper import LooperSettings, StateBackend, StateStore
from vsr.resources.snapshot import Settings, Snapshot
from vsr.workers.unshared import unshared


def of(backend: StateBackend) -> Snapshot:
    """Return a configuration that keeps suspended runs there."""
    return Snapshot("a", settings=Settings(looper=LooperSettings(state=StateStore(backend))))


def test_state_in_memory_is_refused_and_files_are_named() -> None:
    """The next request of a client may reach another worker; files are shared."""
    refused = unshared(of(StateBackend.MEMORY))

    assert [problem.path for problem in refused] == [
        "global.integrations.looper.flow.state.store_backend"
    ]
    assert "file" in refused[0].mend
    assert unshared(of(StateBackend.FILE)) == ()
    assert unshared(Snapshot("a")) == ()
