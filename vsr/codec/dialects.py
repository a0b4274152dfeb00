"""Where providers' Chat Completions APIs differ from one another.

None of them has a member renamed in passing: `max_tokens` and `max_completion_tokens` go out as the
client sent them. Source: the reference's provider dialects.
"""

import msgspec

from vsr.codec.reasoning import Transport

MAX_TOKENS = "max_tokens"
MAX_COMPLETION_TOKENS = "max_completion_tokens"
OUTPUT_LIMITS = (MAX_TOKENS, MAX_COMPLETION_TOKENS)
"""Members by which a client limits the output; the newer one is last."""

KNOWN_MEMBERS = frozenset(
    {
        "audio",
        "frequency_penalty",
        "function_call",
        "functions",
        "logit_bias",
        "logprobs",
        "max_completion_tokens",
        "max_tokens",
        "messages",
        "metadata",
        "modalities",
        "model",
        "n",
        "parallel_tool_calls",
        "prediction",
        "presence_penalty",
        "prompt_cache_key",
        "prompt_cache_retention",
        "reasoning_effort",
        "response_format",
        "safety_identifier",
        "seed",
        "service_tier",
        "stop",
        "store",
        "stream",
        "stream_options",
        "temperature",
        "tool_choice",
        "tools",
        "top_logprobs",
        "top_p",
        "user",
        "verbosity",
        "web_search_options",
    }
)
"""Members of a request to create a chat completion. Source: OpenAI's API reference."""


class Dialect(msgspec.Struct, frozen=True):
    """One provider's variant."""

    reasoning_transport: Transport = Transport.TEMPLATE
    own_members: frozenset[str] = frozenset()
    """Members that clients may use with this provider and OpenAI doesn't know."""
    output_limit: str = MAX_TOKENS
    """The member by which the Router itself limits the output."""


_DEEPSEEK_HOST = "api.deepseek.com"
_OPENAI_HOST = "api.openai.com"


def dialect_of(provider: str, host: str, transport: str = Transport.TEMPLATE) -> Dialect:
    """Return what a backend speaks.

    Args:
        provider: its built-in provider.
        host: where it is. Older documents call every provider `openai` and differ in this alone.
        transport: of the provider's reasoning switch, a word of `Transport`.
    """
    host = host.lower()
    if provider == "openai" and host == _DEEPSEEK_HOST:
        transport = Transport.DEEPSEEK_THINKING
    is_openai = provider == "azure-openai" or (provider == "openai" and host == _OPENAI_HOST)
    is_deepseek = transport == Transport.DEEPSEEK_THINKING
    return Dialect(
        reasoning_transport=Transport(transport),
        own_members=frozenset({"thinking"} if is_deepseek else ()),
        # OpenAI's reasoning models refuse the older name; runtimes may not know the newer one.
        output_limit=MAX_COMPLETION_TOKENS if is_openai else MAX_TOKENS,
    )
