"""The process that reads and compiles documents for a Router that serves; see `config.child`."""

import gc
from typing import TYPE_CHECKING

from vsr.config.compiling import run_child

if TYPE_CHECKING:
    from vsr.resources.snapshot import Snapshot


def check(snapshot: "Snapshot") -> None:
    """Compile the graphs of a snapshot, to find what is wrong with them.

    Raises:
        ConfigRejected: something is.
    """
    if not any(program.graphs for program in snapshot.programs) and not snapshot.has_graphs:
        return
    from vsr.compose.generation import compile_alone  # noqa: PLC0415  # takes as long as all the rest

    compile_alone(snapshot)


if __name__ == "__main__":
    gc.disable()  # it ends before anything is worth collecting
    run_child(check)
