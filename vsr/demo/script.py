"""What one demo model does: its answers, its pace, its faults."""

import re
from collections.abc import Callable, Iterator, Mapping

import attrs
import msgspec

from vsr.demo.faults import Fault
from vsr.errors import InvalidRequest
from vsr.headers import Headers

_ECHO_CHARS = 64
_WORD = re.compile(r"\s*\S+|\s+$")
_NUMBER = re.compile(r"[0-9]{1,6}")


class Answer(msgspec.Struct, frozen=True):
    """The text of one answer, cut into the pieces that a stream sends."""

    words: tuple[str, ...]
    tokens: int
    """Number of pieces: the words, repeated or cut off to make that many."""
    piece_bytes: int = 0

    def pieces(self) -> Iterator[str]:
        """Return the pieces in order; joined they are the text."""
        for at in range(self.tokens):
            yield self.words[at % len(self.words)].ljust(self.piece_bytes, ".")

    def text(self) -> str:
        """Return the whole text."""
        return "".join(self.pieces())


@attrs.frozen
class Script:
    """How one model server behaves; the same request always gets the same answer."""

    model: str = "demo"
    reply: str = "{model} says: {echo}"
    """`{echo}` is the beginning of the last user message."""
    latency_s: float = 0.0
    """From the request to the head."""
    chunk_interval_s: float = 0.0
    """Between two events of a stream, or two bytes of a trickle."""
    chunks: int | None = None
    """Pieces of the text; None gives one per word."""
    piece_bytes: int = 0
    """Least size of a piece, which dots fill up."""
    fault: Fault | int | None = None
    """What every call meets once `faults` has run out; a number is a status."""
    faults: tuple[Fault | int | None, ...] = ()
    """What the first calls meet, one each; `/health` and `/v1/models` take no part."""
    status: int = 503
    """Of `Fault.STATUS`."""
    retry_after_s: int | None = 1
    """Told with a status of 429; None tells nothing."""
    cut_after: int = 2
    """Events that a stream sends before a fault cuts it off or stalls it."""
    stall_s: float = 30.0
    """From the head to the body when the first byte is slow."""

    def for_call(self, number: int | None, headers: Headers) -> "Script":
        """Return the script of one call: `fault` and `status` settled, `faults` empty.

        Args:
            number: of the call among those that `faults` counts, from 0; None if it is not counted.
            headers: the request's; `x-demo-fault`, `x-demo-status`, `x-demo-latency-ms`,
                `x-demo-chunks` and `x-demo-cut-after` come before what the script says.

        Raises:
            InvalidRequest: such a header has no sound value.
        """
        fault = None
        if number is not None:
            fault = self.faults[number] if number < len(self.faults) else self.fault
        call = attrs.evolve(self, fault=fault, faults=())
        if isinstance(fault, int):
            call = attrs.evolve(call, fault=Fault.STATUS, status=fault)
        for name, apply in _WISHES.items():
            if name in headers:
                call = apply(call, headers.get(name).decode("latin-1"), name.decode())
        return call

    def answer(self, message: str) -> Answer:
        """Return the answer to a last user message."""
        echo = " ".join(message[: 4 * _ECHO_CHARS].split())[:_ECHO_CHARS]
        text = self.reply.replace("{model}", self.model).replace("{echo}", echo)
        words = tuple(_WORD.findall(text)) or ("",)
        return Answer(words, self.chunks or len(words), self.piece_bytes)


def _wish_fault(script: Script, value: str, name: str) -> Script:
    try:
        return attrs.evolve(script, fault=Fault(value))
    except ValueError:
        raise InvalidRequest(f"{name} takes one of: {', '.join(Fault)}") from None


def _wish_status(script: Script, value: str, name: str) -> Script:
    status = _number(value, name, 200, 599)
    return attrs.evolve(script, fault=Fault.STATUS, status=status)


def _wish_latency(script: Script, value: str, name: str) -> Script:
    return attrs.evolve(script, latency_s=_number(value, name, 0, 600_000) / 1000)


def _wish_chunks(script: Script, value: str, name: str) -> Script:
    return attrs.evolve(script, chunks=_number(value, name, 1, 100_000))


def _wish_cut(script: Script, value: str, name: str) -> Script:
    return attrs.evolve(script, cut_after=_number(value, name, 0, 100_000))


_WISHES: Mapping[bytes, Callable[[Script, str, str], Script]] = {
    b"x-demo-status": _wish_status,
    # After the status, which implies a fault of its own.
    b"x-demo-fault": _wish_fault,
    b"x-demo-latency-ms": _wish_latency,
    b"x-demo-chunks": _wish_chunks,
    b"x-demo-cut-after": _wish_cut,
}


def _number(value: str, name: str, low: int, high: int) -> int:
    if _NUMBER.fullmatch(value) and low <= int(value) <= high:
        return int(value)
    raise InvalidRequest(f"{name} takes a whole number from {low} to {high}")
