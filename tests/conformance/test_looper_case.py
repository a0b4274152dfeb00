"""Looper fixtures as they are read."""

from pathlib import Path

import pytest

from tests.conformance.looper_case import UnreadableCase, read_case, with_tool_call_ids

FIXTURE = """
id: one
config: {decision: {name: d}}
turns:
  - request: {headers: {X-Debug: true}, body: {model: auto}}
    backend: {a: [{content: x}]}
    expect: {calls: []}
    expect_since_0_4_0: {calls: [{model: a}]}
  - request: {body: {model: auto}}
    expect: {response: {status: 200}}
"""


def written(folder: Path, text: str) -> Path:
    """Write a fixture and return its path."""
    path = folder / "file-name.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_case_is_read_whole(tmp_path: Path) -> None:
    """The newer of two expectations counts, and what is left out is empty."""
    case = read_case(written(tmp_path, FIXTURE))

    first, second = case.turns
    assert (case.name, case.decision, case.is_seen_at_backend) == ("one", {"name": "d"}, False)
    assert (first.headers, first.backend) == ({"x-debug": "True"}, {"a": [{"content": "x"}]})
    assert first.expect == {"calls": [{"model": "a"}]}
    assert (second.headers, second.backend, second.verifier) == ({}, {}, ())
    assert second.expect == {"response": {"status": 200}}


def test_calls_may_be_stated_at_the_backend(tmp_path: Path) -> None:
    """Which the case says at its top; a case without id has its file's name."""
    text = FIXTURE.replace("id: one", "calls_at: backend")

    case = read_case(written(tmp_path, text))

    assert (case.name, case.is_seen_at_backend) == ("file-name", True)


@pytest.mark.parametrize(
    "text",
    ["[", "[]", "", "{}", "config: {}", "config: {decision: 3}\nturns: []", "\x00", "config: 1"],
)
def test_other_forms_are_refused(text: str, tmp_path: Path) -> None:
    """By one error."""
    with pytest.raises(UnreadableCase):
        read_case(written(tmp_path, text))


def test_tool_call_ids_are_put_in_wherever_they_stand() -> None:
    """Also within a longer text; one that nobody gave is an error."""
    body = {"a": ["{{tool_call_id:1}}", {"b": "<{{tool_call_id:0}}>"}], "c": None, "d": 1}

    assert with_tool_call_ids(body, ["x", "y"]) == {"a": ["y", {"b": "<x>"}], "c": None, "d": 1}
    with pytest.raises(LookupError):
        with_tool_call_ids(body, ["x"])
