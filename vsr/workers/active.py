"""The active generation of one worker: that of the version which all workers serve."""

from collections.abc import Callable

from vsr.routing.generation import Generation, Retired
from vsr.workers.word import VersionWord


def _nothing() -> None:
    pass


class SharedActive:
    """Implements `routing.generation.Active`: each request looks at the shared word once."""

    __slots__ = ("_cells", "_generation", "_version", "on_other", "retired", "word")

    def __init__(self, word: VersionWord) -> None:
        self.word = word
        self._cells = word.cells
        self._version = 0
        self._generation: Generation | None = None
        self.retired = Retired()
        self.on_other: Callable[[], None] = _nothing
        """Called where the word names another version: activates that, if it is there."""

    @property
    def current(self) -> Generation | None:
        """Return the generation of the version that serves."""
        if self._cells[0] != self._version:
            self.on_other()
        return self._generation

    def activate(self, generation: Generation) -> None:
        """Serve `generation` and retire the one before."""
        previous, self._generation = self._generation, generation
        self._version = generation.version
        self.retired.retire(previous)
