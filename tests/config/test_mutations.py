"""Accepted documents with one part changed at random."""

import copy
from pathlib import Path

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from vsr.config.position import Path as DocumentPath
from vsr.config.position import Value
from vsr.config.report import Report
from vsr.config.source import check_bytes
from vsr.config.yaml_schema import CoreDumper
from vsr.errors import ConfigRejected, Problem

FOLDER = Path(__file__).parents[2] / "fixtures" / "config" / "accepted"
ENVIRON = {"BACKEND_KEY": "canary-backend", "CLIENT_KEY": "canary-two", "PUBLIC_PORT": "8801"}
WORDS = st.sampled_from(["0s", "-1s", "NOT", "keyword", "openai", "sakana", "long", "auto"])
TEXTS = WORDS | st.sampled_from(["${CLIENT_KEY}", "regex", "https://1.2.3.4", "[::1]:1", "(", "1K"])
KEYS = st.sampled_from(["name", "type", "operator", "conditions", "models", "x"])
CHANGES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=5,
)


def authored(name: str) -> Value:
    """Return a fixture's values with its references as written."""
    return yaml.safe_load((FOLDER / name).read_text())  # type: ignore[no-any-return]  # YAML


def paths_of(value: Value, path: DocumentPath = ()) -> list[DocumentPath]:
    """Return the path of every part."""
    children: list[tuple[str | int, Value]] = []
    if isinstance(value, dict):
        children = list(value.items())
    elif isinstance(value, list):
        children = list(enumerate(value))
    return [
        path,
        *(below for key, item in children for below in paths_of(item, (*path, key))),
    ]


def part_at(value: Value, path: DocumentPath) -> Value:
    """Return the part at `path`, which must be there."""
    for key in path:
        value = value[key]  # type: ignore[index]  # the path is of this value
    return value


def changed(value: Value, path: DocumentPath, replacement: Value) -> Value:
    """Return a copy of `value` with another part at `path`."""
    if not path:
        return replacement
    result = copy.deepcopy(value)
    parent = part_at(result, path[:-1])
    parent[path[-1]] = replacement  # type: ignore[index]  # the path is of this value
    return result


PARTS = [
    (name, path)
    for name in ("minimal.yaml", "routing.yaml", "providers.yaml", "recipes.yaml")
    for path in paths_of(authored(name))
]
# Mappings whose keys are the author's own take any.
OPEN_ENDED = {"annotations", "effort_flags", "external_model_ids", "extra_headers", "metrics"}
MAPPINGS = [
    (name, path)
    for name, path in PARTS
    if not OPEN_ENDED & set(path) and isinstance(part_at(authored(name), path), dict)
]


def outcome(name: str, document: Value) -> tuple[Problem, ...]:
    """Return why the document is refused; nothing if it is accepted."""
    data = yaml.dump(document, Dumper=CoreDumper).encode()
    try:
        check_bytes(data, ENVIRON, Report(name))
    except ConfigRejected as error:
        return error.problems
    return ()


@settings(deadline=None)
@given(st.sampled_from(PARTS), CHANGES)
def test_changed_document_is_compiled_or_refused(
    part: tuple[str, DocumentPath], replacement: Value
) -> None:
    """No value at any place raises anything else, and no problem shows a secret."""
    name, path = part

    problems = outcome(name, changed(authored(name), path, replacement))

    assert "canary" not in "".join(map(str, problems))


@settings(deadline=None)
@given(st.sampled_from(MAPPINGS), st.sampled_from(["nmae", "zzz", "pricing"]))
def test_added_key_is_never_ignored(part: tuple[str, DocumentPath], key: str) -> None:
    """Whatever mapping it stands in."""
    name, path = part

    problems = outcome(name, changed(authored(name), (*path, key), 1))

    # An anchor's mapping is in several places.
    assert problems
    assert all(problem.path.endswith(key) for problem in problems)
