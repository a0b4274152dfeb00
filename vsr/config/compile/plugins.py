"""Plugins of a decision: what is switched off is left out."""

from collections.abc import Iterator, Sequence
from typing import Literal, cast

from vsr.config.document.decision_plugin import DecisionPlugin
from vsr.config.document.plugins import (
    FastResponsePluginConfig,
    HeaderMutationPluginConfig,
    RequestParamsPluginConfig,
    SystemPromptPluginConfig,
)
from vsr.config.names import is_proxy_header
from vsr.resources.plugin import (
    FastResponse,
    HeaderMutation,
    Plugin,
    RequestParams,
    SystemPrompt,
    SystemPromptMode,
)


def compile_plugins(plugins: Sequence[DecisionPlugin]) -> tuple[Plugin, ...]:
    """Return the plugins in authored order."""
    return tuple(_compiled(plugins))


def _compiled(plugins: Sequence[DecisionPlugin]) -> Iterator[Plugin]:
    for plugin in plugins:
        match plugin.configuration:
            case SystemPromptPluginConfig() as config:
                # An omitted `enabled` means that a text is enough.
                if config.system_prompt and config.enabled is not False:
                    yield SystemPrompt(config.system_prompt, SystemPromptMode(config.mode))
            case HeaderMutationPluginConfig() as config:
                yield _header_mutation(config)
            case RequestParamsPluginConfig() as config:
                yield _request_params(config)
            case FastResponsePluginConfig() as config:
                yield FastResponse(config.message)
            case _:
                pass


def _header_mutation(config: HeaderMutationPluginConfig) -> HeaderMutation:
    return HeaderMutation(
        sets=tuple(
            (pair.name.strip().encode(), pair.value.encode())
            for pair in (*config.add, *config.update)
            if not is_proxy_header(pair.name)
        ),
        removals=tuple(
            name.strip().encode() for name in config.delete if not is_proxy_header(name)
        ),
    )


def _request_params(config: RequestParamsPluginConfig) -> RequestParams:
    default = cast("int | Literal['auto'] | None", config.default_max_tokens)
    return RequestParams(
        blocked=config.blocked_params,
        default_max_tokens=default,
        max_tokens_limit=config.max_tokens_limit,
        max_n=config.max_n,
        strip_unknown=config.strip_unknown,
    )
