"""Small readings of the document that validation and compilation must share."""

from collections.abc import Mapping

from vsr.config.document.integrations import Integrations
from vsr.config.document.router_settings import RouterSettings

DEFAULT_RECIPE = "default"
"""Name of the recipe that the top-level `routing` block makes."""

PUBLISHED_AUTO_NAME = "vllm-sr/auto"
DEFAULT_AUTO_NAMES = (PUBLISHED_AUTO_NAME, "auto")
"""Automatic model names beside `auto_model_name`. Source: the reference."""


def auto_names(router: RouterSettings) -> tuple[str, ...]:
    """Return the model names that run the default recipe, in order, each once."""
    names = router.auto_model_names
    if names is None:
        names = (*DEFAULT_AUTO_NAMES, router.auto_model_name)
    return tuple(dict.fromkeys(names))


def looper_names(integrations: Integrations) -> Mapping[str, str]:
    """Return the algorithm by authored model name that runs only its decisions."""
    looper = integrations.looper
    if looper is None:
        return {}
    blocks = {"remom": looper.remom, "fusion": looper.fusion, "workflows": looper.flow}
    return {
        name.strip(): algorithm
        for algorithm, block in blocks.items()
        if block is not None
        for name in block.model_names or ()
    }


def is_regex_method(method: str | None) -> bool:
    """Return whether the keywords of a rule with this `method` are regular expressions."""
    return method is not None and method.lower() == "regex"


def is_proxy_header(name: str) -> bool:
    """Return whether no plugin may set or remove the header: it controls the proxy in front."""
    return name.strip().lower().startswith("x-envoy-")
