"""The examples on our pages do what the pages say."""

import re
from pathlib import Path

import pytest
import yaml

from tests.docs.markdown import Block, blocks
from vsr.config.source import load_snapshot
from vsr.errors import ConfigRejected

_VARIABLE = re.compile(r"\$\{?([A-Z][A-Z_]+)|_env: ([A-Z_]+)")

YAML = blocks("yaml")
DOCUMENTS = [block for block in YAML if block.text.startswith("version:")]
FRAGMENTS = [block for block in YAML if not block.text.startswith("version:")]
REFUSED = blocks("yaml refused")
PYTHON = blocks("python")
MODULES = blocks("python module")

BASE = """
version: v0.3
providers:
  models:
    - name: small
      backend_refs: [{endpoint: "127.0.0.1:8001"}]
    - name: large
      backend_refs: [{endpoint: "127.0.0.1:8002"}]
routing:
  signals:
    keywords: [{name: code, operator: OR, keywords: [python]}]
    context: [{name: long_prompt, min_tokens: 8K}]
"""
"""The document around fragments, whose top-level keys are merged into it."""


def _place(block: Block) -> str:
    return block.place


def _environ(text: str) -> dict[str, str]:
    return {name: "a-key" for pair in _VARIABLE.findall(text) for name in pair if name}


@pytest.mark.parametrize("block", DOCUMENTS, ids=_place)
def test_document_loads(block: Block, tmp_path: Path) -> None:
    """A block that begins with `version:` is a document that is served as it stands."""
    file = tmp_path / "config.yaml"
    file.write_text(block.text)

    snapshot = load_snapshot(file, _environ(block.text))

    assert snapshot.clusters


@pytest.mark.parametrize("block", FRAGMENTS, ids=_place)
def test_fragment_loads(block: Block, tmp_path: Path) -> None:
    """Any other YAML block is part of a document about the models `small` and `large`."""
    document = yaml.safe_load(BASE)
    for key, value in yaml.safe_load(block.text).items():
        document[key] = {**document.get(key, {}), **value} if isinstance(value, dict) else value
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump(document))

    snapshot = load_snapshot(file, _environ(block.text))

    assert snapshot.clusters


@pytest.mark.parametrize("block", REFUSED, ids=_place)
def test_refused_document_is_refused_in_the_words_shown(
    block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The block behind a `yaml refused` block shows every problem, as a user sees it."""
    monkeypatch.chdir(tmp_path)
    Path("config.yaml").write_text(block.text)

    with pytest.raises(ConfigRejected) as rejected:
        load_snapshot(Path("config.yaml"), {})

    assert str(rejected.value) == block.following.strip()


@pytest.mark.parametrize("block", PYTHON, ids=_place)
def test_python_is_valid(block: Block) -> None:
    """An excerpt or a client program is at least Python."""
    compile(block.text, block.place, "exec")


@pytest.mark.parametrize("block", MODULES, ids=_place)
def test_module_can_be_imported(block: Block) -> None:
    """A `python module` block is a whole module that fits the interfaces as they are."""
    namespace: dict[str, object] = {"__name__": "example"}

    exec(compile(block.text, block.place, "exec"), namespace)  # noqa: S102  # our own page

    assert namespace["__doc__"]


def test_pages_hold_examples_of_every_sort() -> None:
    """If the marks change their spelling, the tests above must not pass for lack of blocks."""
    assert all((DOCUMENTS, FRAGMENTS, REFUSED, PYTHON, MODULES))
