"""The other side of `own_python`: a process that answers one question, and ends.

It imports no Trio: that would take a third of the time that it has to start.
"""

import os
import sys
from collections.abc import Callable, Iterable

MAGIC = b"\0vsr answers\0"
"""In front of the answer: a package may print when it is imported."""
_NICE = 5
"""Requests go before it where they share a core."""


def answer(produce: Callable[[bytes], Iterable[bytes]]) -> None:
    """Answer one question from standard input on standard output."""
    os.nice(_NICE)
    sys.stdout.flush()
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as output:
        # What others print from now on goes where the Router's own messages go.
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        output.write(MAGIC)
        for part in produce(sys.stdin.buffer.read()):
            output.write(part)
