"""Migration of whole documents: against the reference's own output, and against our goldens."""

import os
import textwrap
from pathlib import Path

import pytest
import yaml

from tests.docs.markdown import blocks
from tests.reference_dir import reference_dir
from vsr.config.migrate.text import MigrationResult, migrate_text

FOLDER = Path(__file__).parents[2] / "fixtures" / "config"
REWRITE = "VSR_REWRITE_GOLDEN=1 .venv/bin/pytest tests/config/test_migrate_text.py"
HEADER = f"# Rewritten by: {REWRITE}\n"
SOURCES = sorted((FOLDER / "migrate").glob("*.yaml"))
ACCEPTED = sorted((FOLDER / "accepted").glob("*.yaml"))

MIGRATED = (
    *(
        f"config/recipes/{name}/config.yaml"
        for name in (
            "accuracy",
            "agent",
            "balance",
            "built-in/latest/mom-v1",
            "feedback",
            "knowledge",
            "multi-objective",
            "privacy",
        )
    ),
    *(
        f"e2e/config/config.{name}.yaml"
        for name in (
            "agent-smoke.amd",
            "agent-smoke.cpu",
            "authz-rbac",
            "authz-rbac-demo",
            "e2e",
            "hallucination",
            "memory-user",
            "memory-user-valkey",
            "multi-endpoint",
            "multi-provider",
            "remote-embedding-smoke",
            "response-api",
            "response-api-redis",
            "testing",
        )
    ),
    *(
        f"e2e/profiles/{name}.yaml"
        for name in (
            "ai-gateway/values",
            "aibrix/values",
            "anthropic-shim/values",
            "authz-rbac/values",
            "dynamic-config/values",
            "jailbreak-onerror/values",
            "llm-d/values",
            "ml-model-selection/values",
            "multi-endpoint/values",
            "multimodal-routing/values",
            "rag-hybrid-search/values",
            "remote-embedding/values",
            "response-api/values",
            "response-api-redis/values",
            "response-api-redis-cluster/values",
            "router-replay/values",
            "routing-strategies/values",
            "routing-strategies/values-mcp",
            "streaming/values",
            "vectorstore-registry/values",
        )
    ),
)
"""Documents that the reference migrated, by their path below its `configs`."""

CANONICAL = (
    "configs/cli-0.4.0/config.template.yaml",
    "configs/cli-0.4.0/mom-v1/config.yaml",
    "configs/config/runtime/vector-store/valkey.yaml",
    "configs/e2e/config/authz-profile-c-static-only.yaml",
    "configs/e2e/config/authz-profile-d-multi-provider-gemini.yaml",
    "configs/e2e/config/authz-profile-e-local-vllm.yaml",
    "examples/algorithm-looper.yaml",
    "examples/mid-size.yaml",
    "examples/minimal.yaml",
)
"""Documents of the reference that need no migration."""


SCALARS = (
    *("0x1F", "0o17", "1e3", ".5", "1_000", "012", "True", "~", "", "2024-01-01", "yes"),
    *("${PORT}", "'it''s'", '"a\\tb"', '"5"', "é😀", "[a, 'b']", "{a: , b: 1}", "!!str 5"),
)
"""Values in spellings that a rewrite could lose."""


def original(name: str) -> str:
    """Return the text of one of the reference's documents; of Helm values the block `config`."""
    text = (reference_dir() / "configs" / name).read_text(encoding="utf-8")
    if "values" not in Path(name).name:
        return text
    lines = text.splitlines(keepends=True)
    start = lines.index("config:\n") + 1
    outside = (at for at in range(start, len(lines)) if lines[at][0] not in " #\n")
    return textwrap.dedent("".join(lines[start : next(outside, len(lines))]))


def comments_of(text: str) -> list[str]:
    """Return what stands behind the first `#` of each line that has one outside of values."""
    return sorted(line.partition("# ")[2] for line in text.splitlines() if "# " in line)


def test_every_document_that_the_reference_migrated_is_tested() -> None:
    """None of its 42 outputs is left out."""
    folder = reference_dir() / "configs" / "migrated-0.4"

    names = {file.relative_to(folder).as_posix() for file in folder.rglob("*.yaml")}

    assert names == set(MIGRATED)


@pytest.mark.parametrize("name", MIGRATED)
def test_migrated_document_equals_that_of_the_reference(name: str) -> None:
    """Every value is the reference's; a second migration finds nothing more to do."""
    golden = (reference_dir() / "configs" / "migrated-0.4" / name).read_text(encoding="utf-8")

    result = migrate_text(original(name))

    assert result.changes
    assert yaml.safe_load(result.text) == yaml.safe_load(golden)
    assert migrate_text(result.text) == MigrationResult(result.text, ())


@pytest.mark.parametrize("name", CANONICAL)
def test_canonical_document_of_the_reference_comes_out_unchanged(name: str) -> None:
    """Byte for byte, whatever its style."""
    text = (reference_dir() / name).read_text(encoding="utf-8")

    assert migrate_text(text) == MigrationResult(text, ())


@pytest.mark.parametrize("file", ACCEPTED, ids=lambda file: file.stem)
def test_document_that_is_served_comes_out_unchanged(file: Path) -> None:
    """Byte for byte, whatever its style."""
    text = file.read_text(encoding="utf-8")

    assert migrate_text(text) == MigrationResult(text, ())


@pytest.mark.parametrize("file", SOURCES, ids=lambda file: file.stem)
def test_old_document_gives_its_golden(file: Path) -> None:
    """Text and changes are those of the golden, with every comment of the old document."""
    source = file.read_text(encoding="utf-8")
    golden = file.with_suffix(".migrated")

    result = migrate_text(source, file.name)

    changes = "".join(f"# {change}\n" for change in result.changes)
    text = f"{HEADER}{changes}---\n{result.text}"
    if os.environ.get("VSR_REWRITE_GOLDEN"):
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")
    assert comments_of(result.text) == comments_of(source)
    assert migrate_text(result.text) == MigrationResult(result.text, ())


@pytest.mark.parametrize("file", SOURCES, ids=lambda file: file.stem)
def test_changes_never_show_a_secret(file: Path) -> None:
    """What is printed has paths and names; credentials are in the document only."""
    source = file.read_text(encoding="utf-8")

    result = migrate_text(source, file.name)

    assert "canary" not in "\n".join(result.changes)
    assert "canary" not in repr(result)
    assert set(_canaries(result.text)) == set(_canaries(source))


def test_line_ends_and_byte_order_mark_stay() -> None:
    """A file from another system stays one."""
    text = "\ufeffversion: v0.3\r\nproviders:\r\n  defaults:\r\n    default_model: a # one\r\n"

    result = migrate_text(text)

    assert result.text == (
        "\ufeffversion: v0.3\r\nproviders:\r\n  defaults:\r\n    model: a # one\r\n"
        "routing:\r\n  signals: {}\r\n"
    )


@pytest.mark.parametrize("scalar", SCALARS)
def test_other_values_stay_as_written(scalar: str) -> None:
    """Neither the spelling of a number nor the quotes of a text are the migration's business."""
    text = f"other: {scalar}\nproviders:\n  defaults:\n    default_model: a\n"

    result = migrate_text(text)

    expected = scalar.replace("{a: ,", "{a: null,")
    assert f"other: {expected}".rstrip() in [line.rstrip() for line in result.text.splitlines()]


def test_indentation_of_the_document_is_kept() -> None:
    """Lists stand under their key if they did, and mappings as far in as they did."""
    text = textwrap.dedent(
        """\
        version: v0.3
        listeners: []
        providers:
            models:
            - name: a
              reasoning_family: qwen3
              backend_refs:
              - endpoint: a:80
                type: vllm
        routing:
            signals:
                keywords: []
        """
    )

    result = migrate_text(text)

    old = "      reasoning_family: qwen3\n"
    new = "      reasoning:\n          family: qwen3\n"
    assert result.text == text.replace(old, new).replace("type: vllm", "provider: vllm")


def test_text_blocks_stay_as_written() -> None:
    """Literal and folded text keeps its lines, and a `#` in it is no comment."""
    block = "  note: |\n    one # not a comment\n\n    two\n  more: >-\n    a long\n    text\n"
    text = f"other:\n{block}# a comment\nproviders:\n  defaults:\n    default_model: a\n"

    result = migrate_text(text)

    assert f"other:\n{block}# a comment\nproviders:\n" in result.text


@pytest.mark.parametrize(
    "text",
    [
        "a:\n    b:\n        k: |4\n                indented\n            less\n",
        "a:\n  - |2\n     x\n    y\n  - >2\n     x\n    y\n",
        "a: |2\n  \tx\n",
        "a:\n  - b: >\n      x\n        more\n\n      y\n  - |+\n    z\n\n\n",
        "a: 'b\n\n  c'\nd: e\n  f\n\n  g\n",
        "? |\n  key # no comment\n: 1\n",
    ],
)
def test_text_of_several_lines_keeps_its_value(text: str) -> None:
    """However its lines are indented, and whatever white space it begins or ends with."""
    result = migrate_text(f"{text}default_model: a\n")

    values = yaml.safe_load(text)
    assert {key: yaml.safe_load(result.text)[key] for key in values} == values


def test_example_of_the_page_is_what_the_migration_does() -> None:
    """The old document on the page gives the new one beside it."""
    old, *more = blocks("yaml old")

    assert more == []
    assert migrate_text(old.text).text == old.following


def _canaries(text: str) -> list[str]:
    return [word for word in text.replace('"', " ").split() if word.startswith("canary")]
