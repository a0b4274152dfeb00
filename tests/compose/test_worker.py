"""What a worker is wired of."""

import fcntl
import os
import subprocess
import sys

import pytest
import trio
import trio.testing

from vsr.compose.worker import WriteInTurn

PATIENCE_S = 20
_HOLD = """
import fcntl, os, sys
fcntl.lockf(int(sys.argv[1]), fcntl.LOCK_EX)
os.write(1, b"held")
sys.stdin.read()
"""


async def test_lines_wait_for_the_turn_of_another_worker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One that dies lets go of its turn."""
    memory = os.memfd_create("turn")
    reader, writer = os.pipe()
    holder = subprocess.Popen(  # noqa: S603, ASYNC220  # our own interpreter, which is quick
        [sys.executable, "-c", _HOLD, str(memory)],
        pass_fds=(memory,),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert holder.stdout is not None
    assert holder.stdin is not None
    assert holder.stdout.read(4) == b"held"
    order: list[str] = []
    in_turn = WriteInTurn(memory)
    monkeypatch.setattr("vsr.compose.worker.write_all", lambda data: os.write(writer, data))

    async def write() -> None:
        await in_turn(b"line\n")
        order.append("written")

    with trio.fail_after(PATIENCE_S):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(write)
            await trio.testing.wait_all_tasks_blocked(0.1)
            order.append("killed")
            holder.kill()
    holder.wait()
    for pipe in (holder.stdin, holder.stdout):
        pipe.close()
    os.close(writer)

    assert order == ["killed", "written"]
    assert os.read(reader, 100) == b"line\n"
    fcntl.lockf(memory, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(memory)
    os.close(reader)
