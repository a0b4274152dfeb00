"""The listening sockets of a supervisor, which all its workers accept from."""

import os
import socket
from collections.abc import Sequence
from typing import Protocol

import attrs
import msgspec

from vsr.errors import ConfigRejected, Problem
from vsr.network.listening import begin_listening, bound_socket, retire
from vsr.resources.listener import Listener
from vsr.workers.messages import Place


class Bind(Protocol):
    """Binds a socket; see `vsr.network.listening.bound_socket`."""

    def __call__(
        self, address: str, port: int, beside: Sequence[socket.socket], *, was_ours: bool
    ) -> socket.socket:
        """Bind."""
        ...


class SocketChange(msgspec.Struct, frozen=True):
    """What the listeners of another configuration come to."""

    new: dict[Place, socket.socket]
    gone: dict[Place, socket.socket]

    def open(self) -> None:
        """Let clients come to what was bound.

        Raises:
            ConfigRejected: another process has come to listen there; `close` is to follow.
        """
        for place, sock in self.new.items():
            try:
                begin_listening(sock, _on_port(self.gone, place.port))
            except OSError as error:
                raise _refused("listeners", place.port, error) from None

    def close(self) -> None:
        """Close what was bound for it, where it is never served."""
        for sock in self.new.values():
            sock.close()


@attrs.define(eq=False)
class ListeningSockets:
    """Holds every socket open, so that a worker's end leaves the clients in its queue alone."""

    bind: Bind = bound_socket
    bound: dict[Place, socket.socket] = attrs.field(factory=dict, init=False)
    _left: set[int] = attrs.field(factory=set, init=False)
    """Ports that were given up: a worker may have yet to close one."""

    def prepare(self, listeners: Sequence[Listener]) -> SocketChange:
        """Bind what other listeners need beside those that are served; no client comes there yet.

        Raises:
            ConfigRejected: an address cannot be bound; what was bound before is closed again.
        """
        places = {_place(each): each for each in listeners}
        gone = {place: sock for place, sock in self.bound.items() if place not in places}
        change = SocketChange({}, gone)
        for place, listener in places.items():
            if place in self.bound:
                continue
            beside, was_ours = _on_port(gone, place.port), place.port in self._left
            try:
                sock = self.bind(place.address, place.port, beside, was_ours=was_ours)
            except OSError as error:
                change.close()
                raise _refused(f"listeners[{listener.name}]", place.port, error) from None
            change.new[place] = sock
        return change

    def commit(self, change: SocketChange) -> None:
        """Keep what is new, which is open; retire what is gone: workers serve who has come."""
        self.bound.update(change.new)
        for place, sock in change.gone.items():
            del self.bound[place]
            self._left.add(place.port)
            retire(sock)
            sock.close()

    def close(self) -> None:
        """Retire all."""
        while self.bound:
            sock = self.bound.popitem()[1]
            retire(sock)
            sock.close()


def _on_port(bound: dict[Place, socket.socket], port: int) -> list[socket.socket]:
    return [sock for place, sock in bound.items() if place.port == port]


def _place(listener: Listener) -> Place:
    return Place(listener.address, listener.port)


def _refused(path: str, port: int, error: OSError) -> ConfigRejected:
    what = f"cannot listen on port {port}: {os.strerror(error.errno or 0)}"
    mend = "free the address, or choose another address or port"
    return ConfigRejected([Problem(path, what, mend=mend)])
