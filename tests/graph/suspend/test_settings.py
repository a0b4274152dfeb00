"""Which store keeps suspended runs."""

from os import urandom
from pathlib import Path

import pytest

from vsr.engine.stores import Stores
from vsr.graph.suspend.file import FileStore
from vsr.graph.suspend.memory import MemoryStore
from vsr.graph.suspend.settings import default_directory, open_memory, open_store
from vsr.resources.looper import StateBackend, StateStore


def test_open_store_goes_by_the_backend() -> None:
    """Files are the default, and the document's directory comes before the default one."""
    default, own = Path("/h/.cache/vllm-sr-flow-state"), Path("/own")
    home = {"HOME": "/h"}

    memory = StateStore(StateBackend.MEMORY, ttl_s=5)
    assert open_store(home, urandom, memory) == MemoryStore(ttl_s=5)
    assert open_store(home, urandom, StateStore()) == FileStore(default, urandom, 1800)
    configured = StateStore(ttl_s=5, directory="/own")
    assert open_store(home, urandom, configured) == FileStore(own, urandom, 5)


def test_stores_keep_theirs_while_the_settings_stay() -> None:
    """A reload must not forget runs that wait in memory; changed settings get another store."""
    stores = Stores(open_memory)

    assert stores.store(StateStore()) is stores.store(StateStore())
    assert stores.store(StateStore()) is not stores.store(StateStore(ttl_s=5))


@pytest.mark.parametrize(
    ("environment", "directory"),
    [
        ({"XDG_CACHE_HOME": "/c", "HOME": "/h"}, "/c/vllm-sr-flow-state"),
        ({"XDG_CACHE_HOME": "c", "HOME": "/h"}, "/h/.cache/vllm-sr-flow-state"),
        ({}, "/t/vllm-sr-flow-state"),
    ],
)
def test_default_directory_is_the_users_cache(environment: dict[str, str], directory: str) -> None:
    """A container without a home has its directory for temporary files."""
    assert default_directory(environment, Path("/t")) == Path(directory)
