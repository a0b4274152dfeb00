"""The built-in providers: where they are and how their requests differ.

Source: the canonical configuration document, "Built-in providers".
"""

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from vsr.resources.reasoning import ReasoningTransport

CHAT = "openai"
RESPONSES = "responses"
MESSAGES = "anthropic"

_CHAT_ONLY = (CHAT,)
_CHAT_RESPONSES = (CHAT, RESPONSES)
_NO_HEADERS: Mapping[str, str] = MappingProxyType({})
_ANTHROPIC_VERSION: Mapping[str, str] = MappingProxyType({"anthropic-version": "2023-06-01"})


class Provider(msgspec.Struct, frozen=True):
    """One kind of backend."""

    base_url: str | None = None
    """None: the document must give an address."""
    protocols: tuple[str, ...] = _CHAT_ONLY
    """In words of `api_format`; the first is the default."""
    auth_header: str | None = "Authorization"
    """None: takes no credential."""
    auth_prefix: str = "Bearer"
    """Empty: the credential stands alone."""
    headers: Mapping[str, str] = _NO_HEADERS
    """Sent unless the document says otherwise."""
    chat_path: str | None = None
    """Replaces the operation path of a chat completion, after the base path."""
    takes_api_version: bool = False
    responses_path: str | None = None
    """The whole path of a Responses call in place of the base path; takes no API version."""


def _both(base_url: str | None = None) -> Provider:
    return Provider(base_url, protocols=_CHAT_RESPONSES)


PROVIDERS: Mapping[str, Provider] = {
    "agnes": _both("https://apihub.agnes-ai.com/v1"),
    "aion": _both("https://api.aionlabs.ai/v1"),
    "amd-atom": Provider(),
    "anthropic": Provider(
        "https://api.anthropic.com",
        protocols=(MESSAGES,),
        auth_header="x-api-key",
        auth_prefix="",
        headers=_ANTHROPIC_VERSION,
    ),
    "anthropic-compatible": Provider(
        protocols=(MESSAGES,), auth_header="x-api-key", auth_prefix="", headers=_ANTHROPIC_VERSION
    ),
    "apodex": Provider("https://api.apodex.ai/v1", protocols=(CHAT, RESPONSES, MESSAGES)),
    "azure-openai": Provider(
        protocols=_CHAT_RESPONSES,
        auth_header="api-key",
        auth_prefix="",
        chat_path="/chat/completions",
        takes_api_version=True,
        responses_path="/openai/v1/responses",
    ),
    "baidu-ai-studio": Provider(
        "https://aistudio.baidu.com/llm/lmapi/v3", chat_path="/chat/completions"
    ),
    "baidu-qianfan": Provider("https://api.baiduqianfan.ai/v1"),
    "bedrock": Provider(chat_path="/chat/completions"),
    "celeris": _both("https://inference.celeris.ai/celeris-1/v1"),
    "cerebras": Provider("https://api.cerebras.ai/v1"),
    "cloudflare-workers-ai": Provider(),
    "cohere": Provider("https://api.cohere.com/compatibility/v1"),
    "cometapi": Provider("https://api.cometapi.com/v1"),
    "compactifai": _both("https://api.compactif.ai/v1"),
    "dashscope": _both("https://dashscope-intl.aliyuncs.com/compatible-mode/v1"),
    "deepinfra": Provider("https://api.deepinfra.com/v1/openai"),
    "deepseek": _both("https://api.deepseek.com/v1"),
    "docker-model-runner": Provider(auth_header=None),
    "featherless": Provider("https://api.featherless.ai/v1"),
    "fireworks": Provider("https://api.fireworks.ai/inference/v1"),
    "friendli": Provider("https://api.friendli.ai/serverless/v1"),
    "gemini": Provider("https://generativelanguage.googleapis.com/v1beta/openai"),
    "groq": Provider("https://api.groq.com/openai/v1"),
    "hugging-face": Provider("https://router.huggingface.co/v1"),
    "inception": Provider("https://api.inceptionlabs.ai/v1"),
    "lemonade": Provider(auth_header=None),
    "lm-studio": Provider(auth_header=None),
    "meta": _both("https://api.meta.ai/v1"),
    "microsoft-foundry": Provider(
        auth_header="api-key", auth_prefix="", chat_path="/mai/v1/chat/completions"
    ),
    "minimax": Provider("https://api.minimax.io/v1"),
    "mistral": Provider("https://api.mistral.ai/v1"),
    "moonshot": Provider("https://api.moonshot.ai/v1"),
    "nebius": Provider("https://api.studio.nebius.com/v1"),
    "novita": Provider("https://api.novita.ai/openai/v1"),
    "nvidia-nim": Provider("https://integrate.api.nvidia.com/v1"),
    "nvidia-riva": Provider(),
    "ollama": Provider(auth_header=None),
    "openai": _both("https://api.openai.com/v1"),
    "openai-compatible": _both(),
    "openrouter": _both("https://openrouter.ai/api/v1"),
    "perplexity": Provider("https://api.perplexity.ai", chat_path="/v1/sonar"),
    "reka": Provider("https://api.reka.ai/v1", auth_header="X-Api-Key", auth_prefix=""),
    "sakana": Provider("https://api.sakana.ai/v1", protocols=(RESPONSES, CHAT, MESSAGES)),
    "sambanova": Provider("https://api.sambanova.ai/v1"),
    "sarvam": Provider(
        "https://api.sarvam.ai/v1", auth_header="api-subscription-key", auth_prefix=""
    ),
    "sglang": _both(),
    "snowflake-cortex": Provider(protocols=(CHAT, MESSAGES), headers=_ANTHROPIC_VERSION),
    "stepfun": Provider("https://api.stepfun.ai/v1"),
    "together": Provider("https://api.together.ai/v1"),
    "triton": Provider(),
    "upstage": Provider("https://api.upstage.ai/v1"),
    "vercel-ai-gateway": Provider("https://ai-gateway.vercel.sh/v1"),
    "vertex-ai": Provider(chat_path="/chat/completions"),
    "vllm": _both(),
    "volcengine-ark": _both("https://ark.cn-beijing.volces.com/api/v3"),
    "writer": Provider("https://api.writer.com", chat_path="/v1/chat"),
    "xai": Provider("https://api.x.ai/v1"),
    "xiaomi": Provider("https://api.xiaomimimo.com/v1", auth_header="api-key", auth_prefix=""),
    "xinference": Provider(),
    "zai": Provider("https://api.z.ai/api/paas/v4"),
}


INJECTION_HEADERS: Mapping[str, str] = {
    "anthropic": "x-user-anthropic-key",
    "azure-openai": "x-user-azure-openai-key",
    "bedrock": "x-user-bedrock-key",
    "cloudflare-workers-ai": "x-user-cloudflare-workers-ai-key",
    "gemini": "x-user-gemini-key",
    "minimax": "x-user-minimax-key",
    "openai": "x-user-openai-key",
    "vertex-ai": "x-user-vertex-ai-key",
}
"""By provider, the header that carries a user's own key."""

REASONING_TRANSPORTS: Mapping[str, ReasoningTransport] = {
    "aion": ReasoningTransport.TOP_LEVEL_EFFORT,
    "anthropic": ReasoningTransport.OUTPUT_CONFIG_EFFORT,
    "azure-openai": ReasoningTransport.TOP_LEVEL_EFFORT,
    "compactifai": ReasoningTransport.TOP_LEVEL_EFFORT,
    "dashscope": ReasoningTransport.TOP_LEVEL_EFFORT,
    "deepinfra": ReasoningTransport.REASONING_OBJECT,
    "deepseek": ReasoningTransport.DEEPSEEK_THINKING,
    "gemini": ReasoningTransport.TOP_LEVEL_EFFORT,
    "inception": ReasoningTransport.TOP_LEVEL_EFFORT,
    "meta": ReasoningTransport.TOP_LEVEL_EFFORT,
    "openai": ReasoningTransport.TOP_LEVEL_EFFORT,
    "openrouter": ReasoningTransport.REASONING_OBJECT,
    "sakana": ReasoningTransport.REASONING_OBJECT,
    "sarvam": ReasoningTransport.TOP_LEVEL_EFFORT,
    "stepfun": ReasoningTransport.TOP_LEVEL_EFFORT,
    "upstage": ReasoningTransport.TOP_LEVEL_EFFORT,
    "volcengine-ark": ReasoningTransport.TOP_LEVEL_EFFORT,
    "xai": ReasoningTransport.TOP_LEVEL_EFFORT,
    "xiaomi": ReasoningTransport.THINKING_OBJECT,
    "zai": ReasoningTransport.THINKING_OBJECT,
}
"""By provider; all others take arguments of the chat template."""
