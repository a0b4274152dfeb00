"""Every document of the reference loads, or is refused for the reference's reason."""

import re
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest
import yaml

from tests.config.reference import find_reference_dir, reference_dir
from vsr.config.load import load
from vsr.config.position import Value
from vsr.config.report import Report
from vsr.config.source import read_bytes
from vsr.config.structure import structure
from vsr.errors import ConfigRejected, Problem

# What only the reference's command line asks for; its Router takes such documents, and so do we.
# Backends that differ are its limit of one Envoy cluster (docs/adr/0015-unlike-backends.md).
TAKEN_BY_THE_ROUTER = (
    "condition names a role instead of the binding",
    "domain without description",
    "heterogeneous backends in one model",
    "version: Field required",
)
REASONS = {
    "use_reasoning=false on an always-on family": r"\.use_reasoning: can't turn off",
    "effort on a mode-only family": r"\.reasoning_effort: can't be given",
    "inline effort reasoning without levels": r"\.reasoning\.levels: is missing",
    "[decisions.tool_selection_with_system_prompt_decision.plugins[2]]": r"\.mode: 'append'",
    "image_gen (enum)": r"\.type: 'image_gen' is unknown",
    "None is not of type 'array' @plugins": r"\.plugins: must be a list, it is empty",
}
"""By words of the index, our problem."""
# These follow from a reason that the index names.
CONSEQUENCES = r"reasoning_effort: |use_reasoning: "


@attrs.frozen
class Row:
    """One document of the index, or its migrated form."""

    path: str
    is_values: bool
    """Whether the document stands under `config` in a file of chart values."""
    verdict: str
    """Of the schema for an original, of the reference's whole command line for a valid one."""


def index() -> str:
    """Return the index of the reference's documents, empty without them."""
    folder = find_reference_dir()
    return "" if folder is None else (folder / "configs" / "INDEX.md").read_text(encoding="utf-8")


def rows() -> Iterator[Row]:
    """Return every whole document, original and migrated."""
    table = index().partition("## 2.")[0]
    for line in table.splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if not line.startswith("| `"):
            continue
        file = cells[1].split("`")[1]
        is_valid = cells[3] == "valid"
        yield Row(file, "(Helm" in cells[1], cells[5] if is_valid else cells[3])
        if "migrated-0.4/" in cells[4]:
            yield Row(f"migrated-0.4/{file}", is_values=False, verdict=cells[5])


def document_of(row: Row) -> bytes:
    """Return the bytes of a row's document."""
    data = (reference_dir() / "configs" / row.path).read_bytes()
    return yaml.safe_dump(yaml.safe_load(data)["config"]).encode() if row.is_values else data


def problems_of(data: bytes) -> tuple[Problem, ...]:
    """Return why a document is refused; nothing if it loads."""
    try:
        read_bytes(data, {}, Report("doc.yaml"))
    except ConfigRejected as error:
        return error.problems
    return ()


def expected_reasons(verdict: str) -> Iterator[tuple[str, int]]:
    """Return expressions of our problems and how often each must be there."""
    for words, expression in REASONS.items():
        found = re.search(rf"{re.escape(words)} ?(?:\u00d7(\d+))?", verdict)
        if found:
            yield expression, int(found[1] or 1)


ROWS = list(rows())


def path_of(row: Row) -> str:
    """Return the name of a test."""
    return row.path


OLD_KEY = re.compile(r"`([a-z_0-9]+)`")


@pytest.mark.parametrize("row", [row for row in ROWS if "invalid" not in row.verdict], ids=path_of)
def test_canonical_document_loads_or_is_refused_for_the_reference_s_reason(row: Row) -> None:
    """As often as the index counts, and for nothing else."""
    problems = "\n".join(map(str, problems_of(document_of(row))))

    reasons = dict(expected_reasons(row.verdict))
    for expression, count in reasons.items():
        assert len(re.findall(expression, problems)) == count
    if row.verdict == "ok":
        assert problems == ""
    elif not row.verdict.startswith(TAKEN_BY_THE_ROUTER):
        assert reasons
        explained = "|".join([*reasons, CONSEQUENCES])
        assert [line for line in problems.splitlines() if not re.search(explained, line)] == []


@pytest.mark.parametrize("row", [row for row in ROWS if "invalid" in row.verdict], ids=path_of)
def test_older_document_is_refused_for_each_of_its_older_keys(row: Row) -> None:
    """Every key and word that the index names has a problem of its own."""
    problems = problems_of(document_of(row))

    refused = {problem.path.rpartition(".")[2] for problem in problems}
    assert set(OLD_KEY.findall(row.verdict)) <= refused
    text = "\n".join(map(str, problems))
    for expression, count in expected_reasons(row.verdict):
        assert len(re.findall(expression, text)) == count


def test_the_index_is_read() -> None:
    """The parametrised tests run on the documents that the index counts."""
    reference_dir()

    assert sum(not row.path.startswith("migrated") for row in ROWS) == 58
    assert sum(row.path.startswith("migrated") for row in ROWS) == 42


def fragments() -> list[Path]:
    """Return the parts of documents that the reference shows."""
    folder = find_reference_dir()
    return [] if folder is None else sorted((folder / "configs/config/fragments").rglob("*.yaml"))


def whole_of(fragment: Value) -> Value:
    """Return a document around a fragment."""
    if isinstance(fragment, dict) and {"routing", "global"} & set(fragment):
        return fragment
    assert isinstance(fragment, dict)
    decision: dict[str, Value] = {"name": "one"}
    if "algorithm" in fragment:
        decision["algorithm"] = fragment["algorithm"]
    plugins = fragment.get("plugins", [fragment["plugin"]] if "plugin" in fragment else [])
    return {"routing": {"decisions": [{**decision, "plugins": plugins}]}}


@pytest.mark.parametrize("file", fragments(), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_fragment_has_the_types_of_the_document(file: Path) -> None:
    """Each key of it is known; one of them is a plugin that was taken out."""
    report = Report("fragment.yaml")
    text = yaml.safe_dump(whole_of(yaml.safe_load(file.read_text(encoding="utf-8"))))
    loaded = load(text.encode(), {}, report)
    assert loaded is not None
    report.lines = loaded.lines

    structure(loaded.values, report)

    is_gone = file.parent.name == "image-gen"
    assert [problem.what for problem in report.problems()] == (
        ["'image_gen' is unknown"] if is_gone else []
    )


STORES = {
    "memory/valkey": ("stores", "memory", "valkey", 0),
    "response-api/redis-cluster": ("services", "response_api", "redis", 0),
    "response-api/redis-production": ("services", "response_api", "redis", 0),
    "response-api/redis-simple": ("services", "response_api", "redis", 0),
    "response-cache/milvus": ("stores", "response_cache", "milvus", 5),
    "response-cache/qdrant": ("stores", "response_cache", "qdrant", 0),
    "response-cache/redis": ("stores", "response_cache", "redis", 3),
    "response-cache/valkey": ("stores", "response_cache", "valkey", 3),
}
"""By file, where its block goes and how many keys of it were taken out since."""


@pytest.mark.parametrize("name", STORES)
def test_store_block_has_the_types_of_the_document(name: str) -> None:
    """Keys that were taken out are refused by name."""
    section, store, backend, gone = STORES[name]
    file = reference_dir() / "configs/config/runtime" / f"{name}.yaml"
    block = yaml.safe_load(file.read_text(encoding="utf-8"))
    block = block.get(backend, block)
    report = Report("block.yaml")
    text = yaml.safe_dump({"global": {section: {store: {backend: block}}}})
    loaded = load(text.encode(), {}, report)
    assert loaded is not None
    report.lines = loaded.lines

    structure(loaded.values, report)

    assert [problem.what for problem in report.problems()] == ["is no longer a key"] * gone
