"""Graphs of the document that stand in files of their own: `{file: PATH}` in their place."""

import hashlib
from collections.abc import Mapping

import attrs

from vsr.config.attempt import Code
from vsr.config.files import FileRefused
from vsr.config.graph_places import written_graphs
from vsr.config.load import MAX_DOCUMENT_BYTES, MAX_VALUES, Loaded, load
from vsr.config.position import LineIndex, Path, Value
from vsr.config.report import Report


def include_graphs(loaded: Loaded, environ: Mapping[str, str], report: Report) -> Loaded:
    """Return the document with each graph that names a file replaced by what the file holds.

    The hash covers these bytes too. What a file holds has its own file and lines in problems.

    Args:
        loaded: the document.
        environ: resolves references in the files.
        report: has the folder, keeps what was read, and gets every problem.
    """
    place = _Inclusion(loaded, environ, report)
    for path, graphs in written_graphs(loaded.values):
        for name in graphs:
            place.include((*path, name), graphs, name)
    return place.whole()


@attrs.define
class _Inclusion:
    """Collects what the files of one document hold."""

    loaded: Loaded
    environ: Mapping[str, str]
    report: Report
    hashes: dict[str, str] = attrs.field(factory=dict, init=False)
    marks: dict[int, Mapping[str | int, int]] = attrs.field(init=False)
    count: int = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.marks = dict(self.loaded.lines.marks)
        self.count = self.loaded.count

    def include(self, path: Path, graphs: dict[str, Value], name: str) -> None:
        """Replace one graph, if it names a file and nothing else."""
        graph = graphs[name]
        file = graph["file"] if isinstance(graph, dict) and set(graph) == {"file"} else None
        if not isinstance(file, str):
            return
        file = str(file)
        content = self._read(file, (*path, "file"))
        if content is None:
            self.report.mark_broken(path)
            return
        self.report.mount(path, str(self.report.files.path_of(file)))
        part = load(content, self.environ, self.report, at=path, max_values=MAX_VALUES - self.count)
        if part is None:
            self.report.mark_broken(path)
            return
        self.hashes[file] = part.sha256
        self.count += part.count
        # By identity: what is replaced gives its own up.
        del self.marks[id(graph)]
        self.marks |= part.lines.marks
        self.marks[id(graphs)] = {**self.marks[id(graphs)], name: part.lines.first}
        graphs[name] = part.values

    def whole(self) -> Loaded:
        """Return the document with everything that was included."""
        loaded = self.loaded
        sha256 = loaded.sha256
        if self.hashes:
            told = [sha256, *(f"{name}\0{each}" for name, each in sorted(self.hashes.items()))]
            sha256 = hashlib.sha256("\n".join(told).encode()).hexdigest()
        lines = LineIndex(loaded.lines.root, self.marks, loaded.lines.first)
        return Loaded(loaded.values, lines, sha256, self.count)

    def _read(self, file: str, path: Path) -> bytes | None:
        self.report.included.add(file)
        try:
            return self.report.files.read(file, MAX_DOCUMENT_BYTES)
        except FileRefused as error:
            what = f"{self.report.quote(path)} can't be read"
            self.report.add(path, what, error.why, error.mend, code=Code.ARTIFACT_UNAVAILABLE)
            return None
