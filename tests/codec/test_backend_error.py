"""Backend errors in the one form that clients get."""

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.reference_dir import reference_dir
from tests.strategies import JSON_VALUES
from vsr.codec.backend_error import (
    MAX_MESSAGE_CHARACTERS,
    openai_backend_error,
    read_backend_error,
)

UNSAID = "The backend answered with status 502."


def members_of(body: bytes) -> dict[str, Any]:
    """Return what is inside a rendered error."""
    [(name, members)] = json.loads(body).items()
    assert name == "error"
    assert list(members) == ["type", "code", "message", "param"]
    found: dict[str, Any] = members
    return found


@pytest.mark.parametrize("name", ["upstream-503", "upstream-429"])
def test_recorded_error_is_re_encoded_as_recorded(name: str) -> None:
    """Byte for byte."""
    folder = reference_dir() / "parity-corpus"
    cases = yaml.safe_load((folder / "cases.yaml").read_text(encoding="utf-8"))
    expected = yaml.safe_load((folder / "expected.yaml").read_text(encoding="utf-8"))
    [case] = [case for case in cases["cases"] if case["name"] == name]
    upstream = cases["upstreams"][case["upstream"]]

    body = openai_backend_error(upstream["status"], upstream["body"].encode())

    assert body.decode() == expected[name]["response"]["body"]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            '{"error":{"message":"m","type":"t","param":"p","code":"c","more":1}}',
            '{"error":{"type":"t","code":"c","message":"m","param":"p"}}',
        ),
        (
            '{"error":{"message":"m\\u00e9","code":400.10}}',
            '{"error":{"type":null,"code":400.10,"message":"mé","param":null}}',
        ),
        (
            '{"type":"error","error":{"type":"overloaded_error","message":"m"},"request_id":"r"}',
            '{"error":{"type":"overloaded_error","code":null,"message":"m","param":null}}',
        ),
        (
            '{"object":"error","message":"m","type":"BadRequestError","param":null,"code":400}',
            '{"error":{"type":"BadRequestError","code":400,"message":"m","param":null}}',
        ),
        ('{"error":"m"}', '{"error":{"type":null,"code":null,"message":"m","param":null}}'),
        ('{"detail":"m"}', '{"error":{"type":null,"code":null,"message":"m","param":null}}'),
        (
            '{"detail":[{"msg":"m"}]}',
            '{"error":{"type":null,"code":null,"message":"[{\\"msg\\":\\"m\\"}]","param":null}}',
        ),
        (
            '[{"error":{"code":404,"message":"m","status":"NOT_FOUND"}}]',
            '{"error":{"type":null,"code":404,"message":"m","param":null}}',
        ),
        (
            '{"error":{"message":"m","type":{"a":1},"code":[],"param":true}}',
            '{"error":{"type":null,"code":null,"message":"m","param":null}}',
        ),
        ('"m"', '{"error":{"type":null,"code":null,"message":"m","param":null}}'),
        (
            " no upstream \n",
            '{"error":{"type":null,"code":null,"message":"no upstream","param":null}}',
        ),
    ],
)
def test_known_forms_are_read(body: str, expected: str) -> None:
    """Type, code and param keep their literals; what the form has no place for is null."""
    assert openai_backend_error(502, body.encode()).decode() == expected


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" \r\n",
        b"<html><body>token=abc</body></html>",
        b"\n<!DOCTYPE html>",
        b"\x1f\x8b\x08\x00",
        b"text\x00",
        b"\xff\xfe",
        b"{}",
        b"[]",
        b"null",
        b"17",
        b'{"error":null}',
        b'{"error":{}}',
        b'{"error":{"message":""}}',
        b'{"error":{"message":null,"other":"secret"}}',
        b'{"status":"secret"}',
        b'{"message":""}',
        b'{"error":{"message":"m"}}' + b" " * (1 << 20),
    ],
)
def test_message_is_ours_where_the_backend_has_none_to_show(body: bytes) -> None:
    """Pages, binary and empty bodies, and members of unknown meaning are not shown."""
    members = members_of(openai_backend_error(502, body))

    assert members == {"type": None, "code": None, "message": UNSAID, "param": None}


def test_long_texts_are_cut() -> None:
    """A message is cut, a scalar over its bound is left out."""
    long = "x" * 10_000
    body = json.dumps({"error": {"message": long, "code": long}}).encode()

    for error in (read_backend_error(500, body), read_backend_error(500, long.encode())):
        assert len(error.message) == MAX_MESSAGE_CHARACTERS
        assert error.message.endswith("x…")
    assert members_of(openai_backend_error(500, body))["code"] is None


@given(body=st.binary() | JSON_VALUES.map(lambda value: json.dumps({"error": value}).encode()))
def test_any_body_becomes_a_bounded_error(body: bytes) -> None:
    """Whatever a backend sends, the client gets JSON with a text."""
    members = members_of(openai_backend_error(502, body))

    assert isinstance(members["message"], str)
    assert members["message"]
