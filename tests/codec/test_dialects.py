"""Dialects: what a provider's API differs in."""

import pytest

from vsr.codec.dialects import KNOWN_MEMBERS, Dialect, dialect_of
from vsr.codec.reasoning import Transport


@pytest.mark.parametrize(
    ("provider", "host", "given", "transport"),
    [
        ("vllm", "10.0.0.1", "chat_template_kwargs", Transport.TEMPLATE),
        ("openai-compatible", "api.deepseek.com", "chat_template_kwargs", Transport.TEMPLATE),
        ("openai", "api.openai.com", "top_level_effort", Transport.TOP_LEVEL_EFFORT),
        ("openai", "openrouter.ai", "top_level_effort", Transport.TOP_LEVEL_EFFORT),
        ("openai", "API.DeepSeek.com", "top_level_effort", Transport.DEEPSEEK_THINKING),
        ("openrouter", "openrouter.ai", "reasoning_object", Transport.REASONING_OBJECT),
    ],
)
def test_dialect_has_the_transport_of_provider_or_host(
    provider: str, host: str, given: str, transport: Transport
) -> None:
    """The host counts only under the name that older documents gave every provider."""
    assert dialect_of(provider, host, given).reasoning_transport is transport


def test_deepseek_has_a_member_of_its_own() -> None:
    """A client may use `thinking` there, and nowhere else."""
    assert dialect_of("openai", "api.deepseek.com").own_members == {"thinking"}
    assert dialect_of("deepseek", "x", "deepseek_thinking").own_members == {"thinking"}
    assert dialect_of("openai", "localhost").own_members == frozenset()
    assert "thinking" not in KNOWN_MEMBERS


@pytest.mark.parametrize(
    ("dialect", "member"),
    [
        (Dialect(), "max_tokens"),
        (dialect_of("openai", "api.openai.com"), "max_completion_tokens"),
        (dialect_of("azure-openai", "x"), "max_completion_tokens"),
        (dialect_of("openai", "localhost"), "max_tokens"),
    ],
)
def test_output_limit_has_the_name_that_the_provider_takes(dialect: Dialect, member: str) -> None:
    """OpenAI's reasoning models refuse the older name, older runtimes ignore the newer."""
    assert dialect.output_limit == member
