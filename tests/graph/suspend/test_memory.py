"""Suspended runs in memory."""

import pytest

from tests.graph.suspend.runs import suspended
from vsr.errors import GraphFailed
from vsr.graph.suspend.memory import MemoryStore
from vsr.graph.suspend.run import encode_run

SIZE_BYTES = len(encode_run(suspended("a")))


async def test_take_returns_a_run_once() -> None:
    """Two requests with the same answers must not both go on."""
    store = MemoryStore()
    await store.put(suspended("a"), now_unix_s=1000)

    assert await store.take("a", now_unix_s=1000) == suspended("a")
    assert await store.take("a", now_unix_s=1000) is None


async def test_take_of_an_expired_run_is_none() -> None:
    """A run lives as long as its time to live, counted from when it was suspended."""
    store = MemoryStore(ttl_s=10)
    for state_id in "ab":
        await store.put(suspended(state_id, at_unix_s=1000), now_unix_s=1005)

    assert await store.take("a", now_unix_s=1010) is not None
    assert await store.take("b", now_unix_s=1010.1) is None


async def test_put_forgets_the_oldest_past_its_count() -> None:
    """Clients that never answer must not fill the memory."""
    store = MemoryStore(max_runs=2)
    for state_id in ("a", "b", "a", "c"):
        await store.put(suspended(state_id), now_unix_s=1000)

    assert await store.take("b", now_unix_s=1000) is None
    assert await store.take("a", now_unix_s=1000) is not None
    assert await store.take("c", now_unix_s=1000) is not None


async def test_put_forgets_the_oldest_past_its_bytes() -> None:
    """Few large requests fill the memory as well as many small ones; what was taken is free."""
    store = MemoryStore(max_bytes=2 * SIZE_BYTES)
    await store.put(suspended("a"), now_unix_s=1000)
    await store.take("a", now_unix_s=1000)
    for state_id in "bbcd":
        await store.put(suspended(state_id), now_unix_s=1000)

    assert await store.take("b", now_unix_s=1000) is None
    assert await store.take("c", now_unix_s=1000) is not None
    assert await store.take("d", now_unix_s=1000) is not None


async def test_put_refuses_what_is_too_large_and_keeps_the_others() -> None:
    """One request cannot push out everybody's runs and then not fit either."""
    store = MemoryStore(max_bytes=SIZE_BYTES)
    await store.put(suspended("a"), now_unix_s=1000)

    with pytest.raises(GraphFailed, match="too large"):
        await store.put(suspended("b", request=b'{"x":1}'), now_unix_s=1000)

    assert await store.take("a", now_unix_s=1000) is not None


async def test_clear_forgets_all() -> None:
    """And what is put after it has all of the room."""
    store = MemoryStore(max_bytes=SIZE_BYTES)
    await store.put(suspended("a"), now_unix_s=1000)

    await store.clear()

    assert await store.take("a", now_unix_s=1000) is None
    await store.put(suspended("b"), now_unix_s=1000)
    assert await store.take("b", now_unix_s=1000) is not None
