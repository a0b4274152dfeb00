"""A fresh Python that does what the loop that serves has no time for: one question, one answer.

The question is read on standard input and the answer written on standard output, both by this very
package on both sides, so neither is data of strangers.
"""

import os
import sys
import sysconfig
from pathlib import Path

import trio

from vsr.config.one_answer import MAGIC
from vsr.errors import VsrError

_TIMEOUT_S = 60.0
ANOTHER_RELEASE = "was the Router updated? Then restart it"


class NoAnswer(VsrError):
    """The process ended, or was ended, without an answer; the text says why."""


def command(module: str, *arguments: str) -> list[str]:
    """Return what runs a module of this package as a program."""
    # Not the working directory's modules: whoever may write there is no author.
    return [sys.executable, "-P", "-m", module, *arguments]


def environment() -> dict[str, str]:
    """Return that of a process which imports this very package, wherever it was found."""
    root = str(Path(__file__).parents[2])
    inherited = os.environ.get("PYTHONPATH")
    if root in sysconfig.get_paths().values():
        return dict(os.environ)
    return {**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{inherited}" if inherited else root}


async def ask(module: str, question: bytes) -> bytes:
    """Return the answer of a module that calls `one_answer.answer`; cancelled, it is killed.

    Raises:
        NoAnswer: there is none.
    """
    try:
        with trio.fail_after(_TIMEOUT_S):
            done = await trio.run_process(
                command(module),
                stdin=question,
                capture_stdout=True,
                check=False,
                env=environment(),
            )
    except trio.TooSlowError:
        raise NoAnswer(f"took more than {_TIMEOUT_S:g} s") from None
    except OSError as error:
        raise NoAnswer(f"cannot be started: {error.strerror or 'no reason is known'}") from error
    if done.returncode != 0:
        raise NoAnswer(f"ended with status {done.returncode}")
    _, magic, answered = done.stdout.partition(MAGIC)
    if not magic:
        raise NoAnswer(f"did not answer; {ANOTHER_RELEASE}")
    return answered
