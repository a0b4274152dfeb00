"""Which store keeps suspended runs, by the document's `flow.state`.

Source of names and defaults: looper-algorithms 2.1.
"""

import tempfile
from collections.abc import Mapping
from pathlib import Path

from vsr.graph.suspend.file import FileStore
from vsr.graph.suspend.memory import MemoryStore
from vsr.graph.suspend.store import SuspendStore
from vsr.graph.suspend.tool_ids import DrawBytes
from vsr.resources.looper import StateBackend, StateStore

_DIRECTORY = "vllm-sr-flow-state"


def open_memory(settings: StateStore) -> SuspendStore:
    """Return a store in memory, whatever the backend."""
    return MemoryStore(ttl_s=settings.ttl_s)


def open_store(
    environment: Mapping[str, str], draw: DrawBytes, settings: StateStore
) -> SuspendStore:
    """Return the store of a valid document's settings; nothing is read or written yet.

    Args:
        environment: of the process, for the directory of files where the settings name none.
        draw: for names that no other process takes.
        settings: their backend is `memory` or `file`.
    """
    if settings.backend is StateBackend.MEMORY:
        return open_memory(settings)
    default = default_directory(environment, Path(tempfile.gettempdir()))
    directory = default if settings.directory is None else Path(settings.directory)
    return FileStore(directory, draw, ttl_s=settings.ttl_s)


def default_directory(environment: Mapping[str, str], temporary: Path) -> Path:
    """Return where files go by default: below the user's cache, else below `temporary`."""
    cache = environment.get("XDG_CACHE_HOME") or ""
    if Path(cache).is_absolute():
        return Path(cache) / _DIRECTORY
    home = environment.get("HOME") or ""
    return (Path(home) / ".cache" if Path(home).is_absolute() else temporary) / _DIRECTORY
