"""The Anthropic codec against the reference's phase fixtures and parity records."""

import functools
import json
import re
from typing import Any

import pytest
import yaml

from tests.reference_dir import reference_dir
from vsr.codec.anthropic.protocol_warning import ProtocolWarning
from vsr.codec.anthropic.request_to_anthropic import chat_to_anthropic
from vsr.codec.anthropic.request_to_chat import anthropic_to_chat
from vsr.codec.anthropic.response_to_anthropic import chat_response_to_anthropic
from vsr.codec.anthropic.response_to_chat import anthropic_response_to_chat
from vsr.errors import InvalidRequest

CREATED = 1_700_000_000


def matches(matcher: object, value: object) -> bool:
    """Return whether `value` is what a fixture's matcher asks for."""
    if isinstance(matcher, dict):
        [(word, wanted)] = list(matcher.items())[:1] or [("", None)]
        if word.startswith("$"):
            return _matches_word(word, wanted, value)
        return isinstance(value, dict) and all(
            matches(inner, value.get(name)) for name, inner in matcher.items()
        )
    if isinstance(matcher, list):
        return (
            isinstance(value, list)
            and len(matcher) == len(value)
            and all(map(matches, matcher, value))
        )
    return matcher == value


def _matches_word(word: str, wanted: object, value: object) -> bool:
    match word:
        case "$exact":
            return wanted == value
        case "$regex":
            return re.search(str(wanted), str(value)) is not None
        case "$contains" if isinstance(wanted, list) and isinstance(value, str | list):
            return all(item in value for item in wanted)
        case "$absent":
            return value is None
        case "$json":
            return matches(wanted, json.loads(str(value)))
    raise AssertionError(word)


def _fixture(name: str) -> dict[str, Any]:
    path = reference_dir() / "phase-fixtures" / f"{name}.yaml"
    fixture: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return fixture


@functools.cache
def _corpus() -> tuple[dict[str, Any], dict[str, Any]]:
    folder = reference_dir() / "parity-corpus"
    cases = yaml.safe_load((folder / "cases.yaml").read_text(encoding="utf-8"))
    expected = yaml.safe_load((folder / "expected.yaml").read_text(encoding="utf-8"))
    requests = {
        case["name"]: case["request"]["body"]
        for case in cases["cases"]
        if "body" in case["request"]
    }
    bodies = {name: upstream.get("body", "") for name, upstream in cases["upstreams"].items()}
    return {"requests": requests, "upstreams": bodies}, expected


def _texts(warnings: tuple[ProtocolWarning, ...]) -> list[str]:
    return [str(warning) for warning in warnings]


def _convert(case: dict[str, Any]) -> tuple[Any, list[str]]:
    body = json.dumps(case["input"]["request"]).encode()
    if case["function"] == "anthropic_to_chat":
        chat = anthropic_to_chat(body)
        return json.loads(chat.body), _texts(chat.warnings)
    anthropic = chat_to_anthropic(body)
    return json.loads(anthropic.body), _texts(anthropic.warnings)


@pytest.mark.parametrize(
    ("fixture", "name"),
    [
        ("25-anthropic-to-chat", "tools-images-and-results"),
        ("25-anthropic-to-chat", "system-blocks"),
        ("26-chat-to-anthropic", "full"),
        ("26-chat-to-anthropic", "tool-choice-words"),
        ("26-chat-to-anthropic", "tool-choice-none"),
    ],
)
def test_request_becomes_what_the_fixture_says(fixture: str, name: str) -> None:
    """Members and warnings are the reference's; the limit has its newer name."""
    [case] = [case for case in _fixture(fixture)["cases"] if case["name"] == name]
    expected = case["expect"]["output"]
    if case["function"] == "anthropic_to_chat":
        expected["max_completion_tokens"] = expected.pop("max_tokens")

    output, warnings = _convert(case)

    assert matches(expected, output), output
    assert warnings == case["expect"].get("warnings", warnings)


@pytest.mark.parametrize(
    ("fixture", "name"),
    [
        ("25-anthropic-to-chat", "no-model"),
        ("26-chat-to-anthropic", "bad-arguments"),
        ("26-chat-to-anthropic", "tool-message-without-id"),
    ],
)
def test_request_is_refused_where_the_fixture_says(fixture: str, name: str) -> None:
    """The error names what is wrong."""
    [case] = [case for case in _fixture(fixture)["cases"] if case["name"] == name]

    with pytest.raises(InvalidRequest) as caught:
        _convert(case)

    assert matches(case["expect"]["error"], str(caught.value))


def test_fixtures_are_covered() -> None:
    """Every case of the two fixtures is in one of the lists above."""
    names = [
        case["name"]
        for fixture in ("25-anthropic-to-chat", "26-chat-to-anthropic")
        for case in _fixture(fixture)["cases"]
    ]

    assert len(names) == 8


def test_anthropic_client_session_is_translated_both_ways() -> None:
    """Fixture 19; the records' newer members of usage come on top of its exact list."""
    steps = _fixture("19-anthropic-client-openai-upstream")["steps"]
    request, response = steps[1], steps[3]

    chat = anthropic_to_chat(json.dumps(request["send"]["request_body"]["json"]).encode())
    answer = chat_response_to_anthropic(
        json.dumps(response["send"]["response_body"]["json"]).encode(), model="small"
    )

    wanted = request["expect"]["body"]["json"]
    wanted["max_completion_tokens"] = wanted.pop("max_tokens")
    del wanted["model"]  # a later step's
    assert matches(wanted, json.loads(chat.body))
    assert "lossy;unsupported_block_type;messages[1].content[0].type" in _texts(chat.warnings)
    assert "lossy;top_k_drop_on_openai_backend;top_k" in _texts(chat.openai_warnings)
    assert matches(response["expect"]["body"]["json"]["$exact"], json.loads(answer.body))


def test_chat_client_session_is_translated_both_ways() -> None:
    """Fixture 20."""
    steps = _fixture("20-openai-client-anthropic-upstream")["steps"]
    request, response = steps[1], steps[3]

    anthropic = chat_to_anthropic(json.dumps(request["send"]["request_body"]["json"]).encode())
    answer = anthropic_response_to_chat(
        json.dumps(response["send"]["response_body"]["json"]).encode(),
        created=CREATED,
        model="claude",
    )

    wanted = request["expect"]["body"]["json"]
    del wanted["model"]  # a later step's
    assert matches(wanted, json.loads(anthropic.body))
    assert matches(response["expect"]["body"]["json"], json.loads(answer))


def test_chat_request_is_the_recorded_anthropic_one() -> None:
    """The body of `auto-essay-anthropic-backend`, byte for byte but for the model's name."""
    corpus, expected = _corpus()
    record = expected["auto-essay-anthropic-backend"]
    body = corpus["requests"]["auto-essay-anthropic-backend"]

    anthropic = chat_to_anthropic(body.encode())

    sent = record["upstream"]["body"].replace("claude-compatible-1", "vllm-sr/auto")
    assert anthropic.body.decode() == sent
    assert anthropic.warnings == ()


def test_anthropic_answer_is_the_recorded_completion() -> None:
    """The answer of `auto-essay-anthropic-backend`, byte for byte."""
    corpus, expected = _corpus()
    record = expected["auto-essay-anthropic-backend"]

    answer = anthropic_response_to_chat(corpus["upstreams"]["anthropic-ok"].encode(), created=0)

    variants = [variant["value"] for variant in record["variants"]]
    assert answer.decode() in [record["response"]["body"], *variants]


def test_anthropic_request_is_the_recorded_chat_one() -> None:
    """The body of `anthropic-messages-ingress`, without what a plugin and the target add."""
    corpus, expected = _corpus()
    record = json.loads(expected["anthropic-messages-ingress"]["upstream"]["body"])
    body = corpus["requests"]["anthropic-messages-ingress"]

    chat = anthropic_to_chat(body.encode())

    sent = json.loads(chat.body)
    assert sent["messages"] == record["messages"][1:]
    assert list(sent) == list(record)
    assert sent["max_completion_tokens"] == record["max_completion_tokens"]
    assert chat.warnings == chat.openai_warnings == ()


def test_completion_is_the_recorded_anthropic_answer() -> None:
    """The answer of `anthropic-messages-ingress`, byte for byte."""
    corpus, expected = _corpus()

    answer = chat_response_to_anthropic(corpus["upstreams"]["chat-ok"].encode())

    assert answer.body.decode() == expected["anthropic-messages-ingress"]["response"]["body"]
