"""The faults of one document, collected over every stage of its loading."""

import attrs

from vsr.config.attempt import Code
from vsr.config.environment import Expanded
from vsr.config.files import DocumentFiles
from vsr.config.position import LineIndex, Path, dotted
from vsr.errors import ConfigRejected, Problem


@attrs.define
class Report:
    """Collects problems and knows which parts of the document could not be read.

    A broken part stands in the document as a neutral value, so a later stage would find faults
    that are only its consequences; `add` drops those.
    """

    file: str
    lines: LineIndex = attrs.field(factory=LineIndex)
    files: DocumentFiles = attrs.field(factory=DocumentFiles)
    """What the document names beside itself."""
    included: set[str] = attrs.field(factory=set)
    """Files of `files` that are part of the document, by the path that it writes."""
    code: Code = Code.INVALID_DOCUMENT
    """Of problems that come without one: what the stage under way finds."""
    # Sets, and a dict for its order: a hostile document may have a hundred thousand faults.
    _problems: dict[Problem, None] = attrs.field(factory=dict, init=False)
    _warnings: dict[Problem, None] = attrs.field(factory=dict, init=False)
    _broken: set[Path] = attrs.field(factory=set, init=False)
    _above_broken: set[Path] = attrs.field(factory=set, init=False)
    _lists_with_unknown_names: set[Path] = attrs.field(factory=set, init=False)
    _parts: dict[Path, str] = attrs.field(factory=dict, init=False)
    """File of each part of the document that has its own, by path."""

    def mount(self, path: Path, file: str) -> None:
        """Take note that what stands at `path` was read from a file of its own."""
        self._parts[path] = file

    def origin(self, path: Path) -> tuple[str, Path]:
        """Return the file that `path` was written in, and the path within that file."""
        for length in range(len(path), 0, -1) if self._parts else ():
            file = self._parts.get(path[:length])
            if file is not None:
                return file, path[length:]
        return self.file, path

    def add(  # what, why and mend are the parts of one text
        self,
        path: Path,
        what: str,
        why: str = "",
        mend: str = "",
        *,
        line: int = 0,
        code: Code | None = None,
    ) -> None:
        """Note one problem, unless a broken value at, above or below `path` explains it."""
        if path not in self._above_broken and not self.is_broken(path):
            self._problems[self._problem(path, (what, why, mend), line, code)] = None

    def add_broken(  # as above
        self,
        path: Path,
        what: str,
        why: str = "",
        mend: str = "",
        *,
        line: int = 0,
        code: Code | None = None,
    ) -> None:
        """Note one problem that leaves the value at `path` unknown to later stages."""
        if path not in self._broken:
            self._problems[self._problem(path, (what, why, mend), line, code)] = None
            self.mark_broken(path)

    def warn(self, path: Path, what: str, mend: str = "") -> None:
        """Note something that is accepted but not as its author may think."""
        self._warnings[self._problem(path, (what, "", mend), 0)] = None

    def mark_broken(self, path: Path) -> None:
        """Say that the value at `path` is unknown, for a reason already noted elsewhere."""
        self._broken.add(path)
        self._above_broken.update(path[:length] for length in range(len(path)))
        # The list itself, one of its items, or a key of an item.
        self._lists_with_unknown_names.update((path, path[:-1], path[:-2]))

    def is_whole(self, path: Path) -> bool:
        """Return whether all names in the list at `path` could be read."""
        return path not in self._lists_with_unknown_names and not self.is_broken(path)

    def is_broken(self, path: Path) -> bool:
        """Return whether the value at `path`, or one around it, could not be read."""
        return any(path[:length] in self._broken for length in range(len(path) + 1))

    def quote(self, path: Path) -> str:
        """Return the value at `path` as authored; what the environment gave is never shown."""
        value = self.lines.value(path)
        return repr(value.authored if isinstance(value, Expanded) else value)

    def problems(self) -> tuple[Problem, ...]:
        """Return every problem, in document order, then those of each further file."""
        return tuple(sorted(self._problems, key=self._order))

    def warnings(self) -> tuple[Problem, ...]:
        """Return every warning, in document order."""
        return tuple(sorted(self._warnings, key=self._order))

    def has_problems(self) -> bool:
        """Return whether the document must be refused."""
        return bool(self._problems)

    def rejection(self) -> ConfigRejected:
        """Return the error that refuses the document, with every problem."""
        return ConfigRejected(self.problems())

    def _order(self, problem: Problem) -> tuple[bool, str, int]:
        return problem.file != self.file, problem.file, problem.line

    def _problem(
        self, path: Path, words: tuple[str, str, str], line: int, code: Code | None = None
    ) -> Problem:
        what, why, mend = words
        file, inner = self.origin(path)
        return Problem(
            path=dotted(inner),
            what=what,
            why=why,
            mend=mend,
            file=file,
            line=line or self.lines.line(path),
            code=code or self.code,
        )
