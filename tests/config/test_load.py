"""From bytes to values with lines."""

import hashlib
import json

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from vsr.config.load import MAX_DOCUMENT_BYTES, Loaded, load
from vsr.config.position import Path, Value
from vsr.config.report import Report
from vsr.config.yaml_schema import CoreDumper

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
KEYS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | TEXT
    | st.sampled_from(["yes", "0123", "0o14", "0x1F", "1e3", "1_000", "12:30", "2025-01-01"])
    | st.sampled_from(["~", "null", "<<", "=", "-", "? x", "!tag", "&a", "*a", ".inf", "- a", "#"])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=20,
)


def load_clean(text: str | bytes) -> Loaded:
    """Return the loaded document, which must have no problem."""
    report = Report("doc.yaml")
    loaded = load(text.encode() if isinstance(text, str) else text, {}, report)
    assert report.problems() == ()
    assert loaded is not None
    return loaded


def problems(data: bytes) -> list[str]:
    """Return the problems of a document that can't be loaded."""
    report = Report("doc.yaml")
    load(data, {}, report)
    return [str(problem) for problem in report.problems()]


def escape(value: Value) -> Value:
    """Return `value` with its dollars doubled, so that expansion gives it back."""
    if isinstance(value, str):
        return value.replace("$", "$$")
    if isinstance(value, list):
        return [escape(item) for item in value]
    if isinstance(value, dict):
        return {key: escape(item) for key, item in value.items()}
    return value


@settings(deadline=None)
@given(st.dictionaries(KEYS, VALUES, max_size=4))
def test_any_dumped_document_loads_as_the_same_values(values: dict[str, Value]) -> None:
    """What the dumper writes, the loader reads back with the same types."""
    text = yaml.dump(escape(values), Dumper=CoreDumper, sort_keys=False)

    loaded = load_clean(text)

    # JSON keeps types and order apart where `==` does not.
    assert json.dumps(loaded.values) == json.dumps(values)


def emit(value: Value, path: Path, lines: list[str], index: dict[Path, int], indent: int) -> None:
    """Write `value` in block style and note the line of every path."""
    pad = "  " * indent
    children: list[tuple[str, str | int, Value]] = []
    if isinstance(value, dict):
        children = [(f"{json.dumps(key)}:", key, item) for key, item in value.items()]
    elif isinstance(value, list):
        children = [("-", at, item) for at, item in enumerate(value)]
    for mark, key, item in children:
        nested = isinstance(item, dict | list) and bool(item)
        # A nested item of a list begins below its dash.
        index[*path, key] = len(lines) + (2 if nested and mark == "-" else 1)
        if nested:
            lines.append(pad + mark)
            emit(item, (*path, key), lines, index, indent + 1)
        else:
            lines.append(f"{pad}{mark} {json.dumps(item)}")


LEAVES = st.integers() | st.text("ab \u00e9\n", max_size=5)
TREES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text("abc.", max_size=4), inner, max_size=4)
    ),
    max_leaves=25,
)


@settings(deadline=None)
@given(st.dictionaries(st.text("abc", min_size=1, max_size=4), TREES, min_size=1, max_size=4))
def test_line_index_points_at_every_key_and_item(values: dict[str, Value]) -> None:
    """The line is that of the key, or of the item's first character."""
    lines: list[str] = []
    expected: dict[Path, int] = {}
    emit(values, (), lines, expected, 0)

    index = load_clean("\n".join(lines)).lines

    assert {path: index.line(path) for path in expected} == expected


def test_line_of_a_missing_path_is_that_of_its_nearest_ancestor() -> None:
    """A problem about an omitted key points at the mapping that lacks it."""
    index = load_clean("a:\n  b: [1,\n    2]\n").lines

    assert index.line(("a", "c", "d")) == 1
    assert index.line(("a", "b", 1)) == 3
    assert index.line(("a", "b", 7)) == 2
    assert index.line(("a", "b", 0, "x")) == 2


@pytest.mark.parametrize(
    ("scalar", "value"),
    [
        ("12", 12),
        ("-12", -12),
        ("+12", 12),
        ("0", 0),
        ("0o14", 12),
        ("0x1F", 31),
        ("0123", "0123"),
        ("1_000", "1_000"),
        ("12:30", "12:30"),
        ("1.5", 1.5),
        ("1.", 1.0),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("-1.5E-3", -0.0015),
        (".inf", float("inf")),
        ("-.INF", float("-inf")),
        ("true", True),
        ("False", False),
        ("yes", "yes"),
        ("on", "on"),
        ("~", None),
        ("null", None),
        ("", None),
        ("2025-04-28", "2025-04-28"),
        ("'12'", "12"),
        ('"true"', "true"),
        ("!!str 12", "12"),
        ("!!float 12", 12.0),
        ("24K", "24K"),
    ],
)
def test_plain_scalar_is_typed_by_the_core_schema(scalar: str, value: Value) -> None:
    """YAML 1.2: no `yes`, no octal by leading zero, no base 60, no dates."""
    loaded = load_clean(f"key: {scalar}\n").values

    assert loaded == {"key": value}
    assert isinstance(loaded, dict)
    assert type(loaded["key"]) is type(value)


def test_alias_gives_a_value_of_its_own_each_time() -> None:
    """Lines and values of one use never depend on another; the line is the anchor's."""
    loaded = load_clean("a: &x {k: [1]}\nb: *x\n")

    assert loaded.values == {"a": {"k": [1]}, "b": {"k": [1]}}
    assert isinstance(loaded.values, dict)
    assert loaded.values["a"] is not loaded.values["b"]
    assert loaded.lines.line(("b", "k", 0)) == 1
    assert loaded.lines.line(("b",)) == 2


def test_merge_key_fills_in_what_the_mapping_does_not_say() -> None:
    """The mapping's own keys win, then the mapping merged first."""
    text = "a: &a {x: 1, y: 1}\nb: &b\n  y: 2\n  z: 2\nc:\n  <<: [*a, *b]\n  x: 3\n"

    loaded = load_clean(text)

    assert isinstance(loaded.values, dict)
    assert loaded.values["c"] == {"x": 3, "y": 1, "z": 2}
    assert loaded.lines.line(("c", "z")) == 4
    assert loaded.lines.line(("c", "x")) == 7


def test_keys_are_not_expanded() -> None:
    """References stand in values only."""
    report = Report("doc.yaml")

    loaded = load(b"$A: ${A}\n", {"A": "x"}, report)

    assert loaded is not None
    assert loaded.values == {"$A": "x"}


def test_hash_is_that_of_the_bytes_as_they_came() -> None:
    """Comments, white space and a byte order mark count; the environment does not."""
    data = b"\xef\xbb\xbfa: $A # comment\n"

    assert load_clean(data).sha256 == hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"a: 1\nb: \xff\n", "doc.yaml:2: (document): is not UTF-8 text, save the file as UTF-8"),
        (
            "a: 1\nb: é\nc: \x01\n".encode(),
            "doc.yaml:3: (document): is not valid YAML, control characters are not allowed",
        ),
        (
            b"a: *canary\n",
            "doc.yaml:1: (document): is not valid YAML, found undefined alias",
        ),
        (
            b"#" * (MAX_DOCUMENT_BYTES + 1),
            f"doc.yaml:1: (document): is too large, the limit is {MAX_DOCUMENT_BYTES} bytes",
        ),
        (
            b"[" * 500_000,
            (
                "doc.yaml:1: (document): is not valid YAML, while increasing flow level exceeded"
                " maximum nesting depth"
            ),
        ),
        (
            b"a: " + b"[" * 70 + b"]" * 70,
            (
                "doc.yaml:1: a[0][0][0]: is nested too deep, the limit is 64 levels; an alias may"
                " contain itself"
            ),
        ),
        (
            b"a: " + b"1" * 5000,
            "doc.yaml:1: a: is not a value of its YAML type",
        ),
        (
            b"a: &m [1]\nb: {<<: *m}\n",
            "doc.yaml:1: b: merges what is not a mapping, `<<` takes mappings",
        ),
    ],
)
def test_document_that_cannot_be_read_is_a_problem(data: bytes, expected: str) -> None:
    """Limits hold, and nothing but a problem comes of hostile bytes."""
    assert problems(data) == [expected]


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_give_values_or_problems(data: bytes) -> None:
    """Loading never raises."""
    report = Report("doc.yaml")

    loaded = load(data, {}, report)

    assert loaded is not None or report.problems()


def test_variable_that_is_not_unicode_is_a_problem() -> None:
    """The environment is bytes: what is not UTF-8 can't be sent on, and is not shown."""
    report = Report("doc.yaml")

    load(b"a:\n- ${A}\n", {"A": "canary\udcff"}, report)

    expected = "doc.yaml:2: a[0]: '${A}' gives what is not UTF-8 text"
    assert [str(problem) for problem in report.problems()] == [expected]
