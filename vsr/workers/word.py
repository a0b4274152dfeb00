"""The version that serves, as one word of memory that supervisor and workers share."""

import mmap
import os
import struct

_WORD = struct.Struct("=Q")
_SIZE_BYTES = mmap.PAGESIZE


class VersionWord:
    """Eight aligned bytes, which the processor stores and loads as one: nobody sees a half of them.

    Only the supervisor stores. Whoever has seen a response to a request has seen all that was
    stored before: between them lie system calls of both processes.
    """

    def __init__(self, descriptor: int) -> None:
        """Map the memory behind a descriptor, which becomes the word's."""
        self.descriptor = descriptor
        self._memory = mmap.mmap(descriptor, _SIZE_BYTES)
        self.cells = memoryview(self._memory).cast("Q")
        """The first one is the word: requests read it in place."""

    @property
    def version(self) -> int:
        """Return the version that serves."""
        return self.cells[0]

    def store(self, version: int) -> None:
        """Let all processes serve `version`.

        Raises:
            ValueError: it is older than the one that serves.
        """
        if version < self.cells[0]:
            raise ValueError(f"version {version} is older than {self.cells[0]}")
        self.cells[0] = version

    def close(self) -> None:
        """Unmap it."""
        self.cells.release()
        self._memory.close()
        os.close(self.descriptor)


def make_word_memory(version: int) -> int:
    """Return a descriptor of memory for a word that begins with `version`."""
    descriptor = os.memfd_create("vsr-version")
    os.ftruncate(descriptor, _SIZE_BYTES)
    os.pwrite(descriptor, _WORD.pack(version), 0)
    return descriptor
