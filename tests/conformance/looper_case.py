"""One looper fixture as data: what is configured, asked, answered and expected."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import yaml

Fields = Mapping[str, Any]
_TOOL_CALL_ID = re.compile(r"\{\{tool_call_id:([0-9]+)\}\}")


class UnreadableCase(ValueError):
    """A fixture has not the form that its README describes."""


@attrs.frozen
class Turn:
    """One client request and what comes of it."""

    headers: Mapping[str, str]
    body: Any
    backend: Mapping[str, Sequence[Fields]]
    """Model name as called to its replies, in the order in which calls arrive."""
    verifier: Sequence[Fields]
    grounding: Fields
    expect: Fields
    path: str = "/v1/chat/completions"
    """Where the client asks; a member of our own fixtures, for clients of other protocols."""


@attrs.frozen
class Case:
    """One fixture."""

    name: str
    config: Fields
    is_seen_at_backend: bool
    """Whether calls are stated as the backend gets them, after all that a hop does to them."""
    turns: Sequence[Turn]

    @property
    def decision(self) -> Fields:
        """Return the decision that has matched."""
        decision: Fields = self.config["decision"]
        return decision


def read_case(path: Path) -> Case:
    """Return the case in a file.

    Raises:
        UnreadableCase: it has another form.
        OSError: it cannot be read.
    """
    try:
        fixture = yaml.safe_load(path.read_text(encoding="utf-8"))
        return _case(fixture, path.stem)
    except (yaml.YAMLError, UnicodeDecodeError, KeyError, TypeError, AttributeError) as error:
        what = " ".join(str(error).split())
        raise UnreadableCase(f"{type(error).__name__}: {what}") from error


def _case(fixture: Fields, name: str) -> Case:
    config = fixture["config"]
    if not isinstance(config["decision"], dict):
        raise UnreadableCase("config.decision is no mapping")
    turns = tuple(_turn(turn) for turn in fixture["turns"])
    is_seen_at_backend = fixture.get("calls_at") == "backend"
    return Case(str(fixture.get("id", name)), config, is_seen_at_backend, turns)


def _turn(turn: Fields) -> Turn:
    request = turn["request"]
    # What is built into the Router follows the newer behaviour where the two differ.
    expect = turn.get("expect_since_0_4_0") or turn["expect"]
    return Turn(
        headers={str(key).lower(): str(value) for key, value in _of(request, "headers").items()},
        body=request["body"],
        backend=_of(turn, "backend"),
        verifier=turn.get("verifier") or (),
        grounding=_of(turn, "grounding"),
        expect=expect,
        path=request.get("path", "/v1/chat/completions"),
    )


def _of(fields: Fields, key: str) -> Fields:
    value: Fields = fields.get(key) or {}
    return value


def with_tool_call_ids(value: Any, ids: Sequence[str]) -> Any:  # noqa: ANN401  # JSON
    """Return a request's body with `{{tool_call_id:N}}` replaced by the N-th id, from 0.

    Raises:
        LookupError: there is no such id.
    """
    if isinstance(value, dict):
        return {key: with_tool_call_ids(each, ids) for key, each in value.items()}
    if isinstance(value, list):
        return [with_tool_call_ids(each, ids) for each in value]
    if isinstance(value, str):
        return _TOOL_CALL_ID.sub(lambda found: ids[int(found[1])], value)
    return value
