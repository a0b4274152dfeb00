"""Workers as processes of their own, started afresh."""

import os
import socket
import subprocess

import attrs
import msgspec
import trio

from vsr.config.own_python import command, environment
from vsr.workers.channel import SocketChannel
from vsr.workers.messages import Order, Report


@attrs.define(eq=False)
class SpawnedWorker:
    """Implements `crew.WorkerProcess`."""

    process: trio.Process
    channel: SocketChannel[Report]

    @property
    def pid(self) -> int:
        """Return its process id."""
        return self.process.pid

    async def wait(self) -> int:
        """Wait for its end."""
        return await self.process.wait()

    def kill(self) -> None:
        """End it at once."""
        self.process.kill()


@attrs.frozen
class SpawnWorker:
    """Implements `crew.Spawn`: the worker inherits its end of a socket pair, and nothing else."""

    module: str
    """Run as a program, with slot and descriptor as arguments, it is a worker."""

    async def __call__(self, worker: int) -> SpawnedWorker:
        """Start the process of a slot."""
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                descriptor = theirs.fileno()
                process = await trio.lowlevel.open_process(
                    command(self.module, str(worker), str(descriptor)),
                    stdin=subprocess.DEVNULL,
                    pass_fds=(descriptor,),
                    env=environment(),
                )
        except BaseException:
            ours.close()
            raise
        return SpawnedWorker(process, SocketChannel(ours, msgspec.msgpack.Decoder(Report)))


def worker_channel(descriptor: int) -> SocketChannel[Order]:
    """Return the worker's end of what `SpawnWorker` made; must run on the loop."""
    os.set_inheritable(descriptor, False)  # noqa: FBT003  # takes no name
    sock = socket.socket(fileno=descriptor)
    return SocketChannel(sock, msgspec.msgpack.Decoder(Order))
