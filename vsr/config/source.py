"""One file on disk to one document, and on to one snapshot, or to every reason against it."""

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import attrs
import msgspec

from vsr.config.attempt import Code
from vsr.config.compile.clusters import compile_clusters
from vsr.config.compile.graphs import compile_graphs, graph_source
from vsr.config.compile.programs import compile_programs
from vsr.config.compile.snapshot import compile_snapshot
from vsr.config.document.graphs import Graph
from vsr.config.document.root import Document
from vsr.config.files import DocumentFiles
from vsr.config.graph_files import include_graphs
from vsr.config.load import MAX_DOCUMENT_BYTES, Loaded, load
from vsr.config.report import Report
from vsr.config.serving import Gateway, check_serving
from vsr.config.structure import read_class, structure
from vsr.config.validate.document import validate
from vsr.config.validate.graphs import check_graphs
from vsr.config.validate.models import Models
from vsr.errors import Problem
from vsr.resources.cluster import Cluster
from vsr.resources.graph import GraphSource
from vsr.resources.program import Program
from vsr.resources.snapshot import Snapshot


@attrs.frozen
class ValidDocument:
    """A faultless document; whether this version serves it is another question."""

    loaded: Loaded
    document: Document
    warnings: tuple[Problem, ...] = ()
    report: Report | None = attrs.field(default=None, repr=False, eq=False)
    """Knows what was written, and where."""


class Recipes(msgspec.Struct, frozen=True):
    """What the graphs of a valid document are compiled from, whether it is served or not."""

    programs: tuple[Program, ...]
    clusters: tuple[Cluster, ...] = ()
    """None where the document is not served: what they need may be missing here."""

    @property
    def has_graphs(self) -> bool:
        """Return whether there is a graph, or a decision that one answers for."""
        return any(
            program.graphs or any(each.algorithm.graph for each in program.decisions)
            for program in self.programs
        )


@attrs.frozen
class Checked(ValidDocument):
    """A document that this version serves, and its resources."""

    snapshot: Snapshot = attrs.field(kw_only=True)


def load_snapshot(path: Path, environ: Mapping[str, str]) -> Snapshot:
    """Return the compiled document at `path`.

    Args:
        path: of a YAML file.
        environ: resolves references and `api_key_env`.

    Raises:
        ConfigRejected: with every problem that any stage found.
    """
    return check_file(path, environ).snapshot


def check_file(path: Path, environ: Mapping[str, str]) -> Checked:
    """Return the document at `path` in every form it takes on its way to a snapshot.

    Raises:
        ConfigRejected: with every problem that any stage found.
    """
    report = Report(str(path), files=DocumentFiles(path.parent))
    return check_bytes(read_document(path, report), environ, report)


def check_bytes(
    data: bytes,
    environ: Mapping[str, str],
    report: Report,
    *,
    gateway: Gateway = Gateway.STANDALONE,
) -> Checked:
    """Return the document in `data` in every form.

    Args:
        data: the document.
        environ: resolves references and `api_key_env`.
        report: names the file it came from, and has the folder of those that it names.
        gateway: the mode it is to be served in.

    Raises:
        ConfigRejected: it is faulty, or this version can't serve it in this mode.
    """
    with collector_at_rest():
        return _check(data, environ, report, gateway)


def check_valid(
    valid: ValidDocument, environ: Mapping[str, str], *, gateway: Gateway = Gateway.STANDALONE
) -> Checked:
    """Return a valid document in every form, without reading it once more.

    Raises:
        ConfigRejected: this version can't serve it in this mode.
    """
    with collector_at_rest():
        return _served(valid, environ, gateway)


def _check(data: bytes, environ: Mapping[str, str], report: Report, gateway: Gateway) -> Checked:
    # Served also where it is faulty, so that its author reads everything at once.
    return _served(_examine(data, environ, report), environ, gateway)


def _served(valid: ValidDocument, environ: Mapping[str, str], gateway: Gateway) -> Checked:
    report = valid.report
    assert report is not None  # noqa: S101  # of whoever read it
    report.code = Code.UNSUPPORTED
    check_serving(valid.document, environ, report, gateway=gateway)
    if report.has_problems():
        raise report.rejection()
    snapshot = compile_snapshot(
        valid.document,
        sha256=valid.loaded.sha256,
        environ=environ,
        files=report.files.contents,
        graphs=compile_graphs(valid.document, report),
    )
    return Checked(valid.loaded, valid.document, report.warnings(), snapshot=snapshot)


def load_document(path: Path, environ: Mapping[str, str]) -> ValidDocument:
    """Return the document at `path`, served or not.

    Raises:
        ConfigRejected: with every fault.
    """
    report = Report(str(path), files=DocumentFiles(path.parent))
    return read_bytes(read_document(path, report), environ, report)


def read_bytes(data: bytes, environ: Mapping[str, str], report: Report) -> ValidDocument:
    """Return the document in `data`, served or not; `report` names the file it came from.

    Raises:
        ConfigRejected: with every fault.
    """
    with collector_at_rest():
        valid = _examine(data, environ, report)
    if report.has_problems():
        raise report.rejection()
    return attrs.evolve(valid, warnings=report.warnings())


def read_graph(name: str, data: bytes, environ: Mapping[str, str], *, file: str) -> GraphSource:
    """Return a graph that stands in a file and in no document: models may have any names in it.

    Args:
        name: of the graph.
        data: what the file holds.
        environ: resolves references.
        file: names it in problems.

    Raises:
        ConfigRejected: with every fault but those inside of its steps.
    """
    path = ("routing", "graphs", name)
    report = Report(file)
    report.mount(path, file)
    loaded = load(data, environ, report, at=path)
    if loaded is None:
        raise report.rejection()
    report.lines = loaded.lines.under(path)
    graph = read_class(Graph, loaded.values, path, report)
    check_graphs({name: graph}, path[:-1], Models({}, {}, frozenset()), report)
    if report.has_problems():
        raise report.rejection()
    return graph_source(name, graph, path, report)


def recipes_of(
    valid: ValidDocument, environ: Mapping[str, str], *, gateway: Gateway = Gateway.STANDALONE
) -> Recipes:
    """Return the recipes of a valid document; their models too, if this version serves it."""
    assert valid.report is not None  # noqa: S101  # whoever read it was faultless
    graphs = compile_graphs(valid.document, valid.report)
    programs = compile_programs(valid.document, graphs)
    report = Report(valid.report.file, valid.loaded.lines, valid.report.files)
    check_serving(valid.document, environ, report, gateway=gateway)
    if report.has_problems():
        return Recipes(programs)
    files = valid.report.files.contents
    return Recipes(programs, compile_clusters(valid.document, environ, files))


def unserved(
    valid: ValidDocument, environ: Mapping[str, str], *, file: str, gateway: Gateway
) -> tuple[Problem, ...]:
    """Return everything that keeps this version from serving a valid document in a mode."""
    report = Report(file, valid.loaded.lines)
    check_serving(valid.document, environ, report, gateway=gateway)
    return report.problems()


@contextmanager
def collector_at_rest() -> Iterator[None]:
    """Keep the garbage collector still; the size of a document bounds what it may miss.

    It would walk the growing trees again and again, for half of the time that all stages take.
    """
    was_at_work = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_at_work:
            gc.enable()


def _examine(data: bytes, environ: Mapping[str, str], report: Report) -> ValidDocument:
    """Return what could be read, valid if `report` has no problems.

    Raises:
        ConfigRejected: nothing could be read.
    """
    loaded = load(data, environ, report)
    if loaded is None:
        raise report.rejection()
    # Lines first: what a file holds is told with its own.
    report.lines = loaded.lines
    loaded = include_graphs(loaded, environ, report)
    report.lines, report.code = loaded.lines, Code.INVALID_RESOURCE
    document = structure(loaded.values, report)
    validate(document, report)
    return ValidDocument(loaded, document, report=report)


def read_document(path: Path, report: Report) -> bytes:
    """Return what a file holds, one byte more than the limit at most.

    Raises:
        ConfigRejected: it cannot be read.
    """
    try:
        with path.open("rb") as file:
            # One byte more than allowed, so that the limit shows.
            return file.read(MAX_DOCUMENT_BYTES + 1)
    except OSError as error:
        report.add((), "can't be read", error.strerror or "", "check the path", line=1)
        raise report.rejection() from error
