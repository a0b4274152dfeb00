"""The listening sockets of a supervisor, which all its workers accept from."""

import os
import socket
from collections.abc import Callable, Sequence

import attrs
import msgspec

from vsr.errors import ConfigRejected, Problem
from vsr.network.epoll_listener import listening_socket
from vsr.resources.listener import Listener
from vsr.workers.messages import Place

Bind = Callable[[str, int], socket.socket]


class SocketChange(msgspec.Struct, frozen=True):
    """What the listeners of another configuration come to."""

    new: dict[Place, socket.socket]
    gone: tuple[Place, ...] = ()

    def close(self) -> None:
        """Close what was bound for it, where it is never served."""
        for sock in self.new.values():
            sock.close()


@attrs.define(eq=False)
class ListeningSockets:
    """Holds every socket open, so that a worker's end leaves the clients in its queue alone."""

    bind: Bind = listening_socket
    bound: dict[Place, socket.socket] = attrs.field(factory=dict, init=False)

    def prepare(self, listeners: Sequence[Listener]) -> SocketChange:
        """Bind what other listeners need beside those that are served.

        Raises:
            ConfigRejected: an address cannot be bound; what was bound before is closed again.
        """
        change = SocketChange({}, tuple(set(self.bound) - {_place(each) for each in listeners}))
        for listener in listeners:
            place = _place(listener)
            if place in self.bound:
                continue
            try:
                change.new[place] = self.bind(listener.address, listener.port)
            except OSError as error:
                change.close()
                raise _refused(listener, error) from None
        return change

    def commit(self, change: SocketChange) -> None:
        """Keep what is new, close what is gone: the last worker empties its queue."""
        self.bound.update(change.new)
        for place in change.gone:
            self.bound.pop(place).close()

    def close(self) -> None:
        """Close all."""
        while self.bound:
            self.bound.popitem()[1].close()


def _place(listener: Listener) -> Place:
    return Place(listener.address, listener.port)


def _refused(listener: Listener, error: OSError) -> ConfigRejected:
    what = f"cannot listen on port {listener.port}: {os.strerror(error.errno or 0)}"
    mend = "free the address, or choose another address or port"
    return ConfigRejected([Problem(f"listeners[{listener.name}]", what, mend=mend)])
