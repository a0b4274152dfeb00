"""Usage of a buffered completion."""

import pytest

from vsr.codec.usage import TokenUsage, read_usage


def test_usage_is_read() -> None:
    """The two counts come through, whatever stands around them; zero is a count."""
    body = (
        b'{"id":"x","choices":[{"a":1}],'
        b'"usage":{"prompt_tokens":12,"completion_tokens":0,"total_tokens":12}}'
    )

    usage = read_usage(body)

    assert usage == TokenUsage(prompt_tokens=12, completion_tokens=0)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"not json",
        b"[]",
        b"{}",
        b'{"usage":null}',
        b'{"usage":{}}',
        b'{"usage":{"prompt_tokens":1}}',
        b'{"usage":{"completion_tokens":1}}',
        b'{"usage":{"prompt_tokens":1,"completion_tokens":null}}',
        b'{"usage":{"prompt_tokens":"1","completion_tokens":1}}',
        b'{"usage":{"prompt_tokens":1.5,"completion_tokens":1}}',
        b'{"usage":{"prompt_tokens":true,"completion_tokens":1}}',
        b'{"usage":{"prompt_tokens":-1,"completion_tokens":1}}',
        b'{"usage":{"prompt_tokens":1,"completion_tokens":1}',
        b'{"usage":' + b"[" * 100_000,
    ],
)
def test_usage_is_unknown_when_any_of_it_is_missing_or_wrong(body: bytes) -> None:
    """Unknown is None, never zero and never an exception."""
    assert read_usage(body) is None
