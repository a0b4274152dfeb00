"""`routing.decisions[].plugins[]`: a plugin's type and the configuration of that type."""

from collections.abc import Mapping
from typing import Annotated

from vsr.config.document.objects import REQUIRED, DocumentObject
from vsr.config.document.plugins import (
    FastResponsePluginConfig,
    HallucinationPluginConfig,
    HeaderMutationPluginConfig,
    MemoryPluginConfig,
    PromptCachePluginConfig,
    RAGPluginConfig,
    RequestParamsPluginConfig,
    ResponseCachePluginConfig,
    ResponseJailbreakPluginConfig,
    RouterReplayPluginConfig,
    ShadowDispatchPluginConfig,
    SystemPromptPluginConfig,
)
from vsr.config.document.plugins_compression import ContextCompressionPluginConfig
from vsr.config.document.plugins_tools import ToolSelectionPluginConfig, ToolsPluginConfig

PluginConfiguration = (
    ContextCompressionPluginConfig
    | FastResponsePluginConfig
    | HallucinationPluginConfig
    | HeaderMutationPluginConfig
    | MemoryPluginConfig
    | PromptCachePluginConfig
    | RAGPluginConfig
    | RequestParamsPluginConfig
    | ResponseCachePluginConfig
    | ResponseJailbreakPluginConfig
    | RouterReplayPluginConfig
    | ShadowDispatchPluginConfig
    | SystemPromptPluginConfig
    | ToolSelectionPluginConfig
    | ToolsPluginConfig
)

PLUGIN_CONFIGURATIONS: Mapping[str, type[DocumentObject]] = {
    "response_cache": ResponseCachePluginConfig,
    "memory": MemoryPluginConfig,
    "system_prompt": SystemPromptPluginConfig,
    "header_mutation": HeaderMutationPluginConfig,
    "hallucination": HallucinationPluginConfig,
    "router_replay": RouterReplayPluginConfig,
    "rag": RAGPluginConfig,
    "fast_response": FastResponsePluginConfig,
    "tools": ToolsPluginConfig,
    "tool_selection": ToolSelectionPluginConfig,
    "request_params": RequestParamsPluginConfig,
    "response_jailbreak": ResponseJailbreakPluginConfig,
    "context_compression": ContextCompressionPluginConfig,
    "prompt_cache": PromptCachePluginConfig,
    "shadow_dispatch": ShadowDispatchPluginConfig,
}
"""By plugin type."""

PLUGIN_ALIASES: Mapping[str, str] = {
    "semantic-cache": "response_cache",
    "semantic_cache": "response_cache",
    "response-cache": "response_cache",
}
"""Older spellings of plugin types, read as what they became."""


class DecisionPlugin(DocumentObject, frozen=True):
    """`routing.decisions[].plugins[]`; the type decides the class of the configuration."""

    type: Annotated[str, REQUIRED] = ""
    configuration: Annotated[PluginConfiguration | None, REQUIRED] = None
