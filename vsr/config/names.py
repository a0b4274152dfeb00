"""Small readings of the document that validation and compilation must share."""

from collections.abc import Iterator, Mapping

from vsr.config.document.integrations import Integrations, LooperConfig
from vsr.config.document.root import Document
from vsr.config.document.router_settings import RouterSettings
from vsr.config.document.routing import RecipeRouting
from vsr.config.position import Path

DEFAULT_RECIPE = "default"
"""Name of the recipe that the top-level `routing` block makes."""

PUBLISHED_AUTO_NAME = "vllm-sr/auto"
DEFAULT_AUTO_NAMES = (PUBLISHED_AUTO_NAME, "auto")
"""Automatic model names beside `auto_model_name`. Source: the reference."""

DEFAULT_LOOPER_NAMES: Mapping[str, str] = {
    "remom": "vllm-sr/remom",
    "fusion": "vllm-sr/fusion",
    "workflows": "vllm-sr/flow",
}
"""By algorithm, the model name that runs only its decisions. Source: the reference."""
OPERATOR_RATING = "vllm-sr/operator-rating@1.0.0"
"""Benchmark of a score that an operator gave. Source: the 0.4.0 migration's own records."""
BUILT_IN = "builtin/"
"""What the names of built-in graphs begin with."""


def auto_names(router: RouterSettings) -> tuple[str, ...]:
    """Return the model names that run the default recipe, in order, each once."""
    names = router.auto_model_names
    if names is None:
        names = (*DEFAULT_AUTO_NAMES, router.auto_model_name)
    return tuple(dict.fromkeys(names))


def recipe_routings(document: Document) -> Iterator[tuple[Path, RecipeRouting]]:
    """Yield every recipe's routing and its path, the top-level one first."""
    yield ("routing",), document.routing
    for at, recipe in enumerate(document.recipes):
        yield ("recipes", at, "routing"), recipe.routing


def default_routing(document: Document) -> RecipeRouting:
    """Return the routing of the default recipe, which a recipe may have taken over."""
    named = [each.routing for each in document.recipes if each.name.strip() == DEFAULT_RECIPE]
    return named[0] if named else document.routing


def looper_names(integrations: Integrations) -> Mapping[str, str]:
    """Return the algorithm by the model name that runs only its decisions."""
    looper = integrations.looper or LooperConfig()
    return {
        name: algorithm
        for algorithm in DEFAULT_LOOPER_NAMES
        for name in names_of(algorithm, looper)
    }


def names_of(algorithm: str, looper: LooperConfig) -> tuple[str, ...]:
    """Return the model names that run only decisions of `algorithm`; it may have none.

    Authored names take the place of an algorithm's default one.
    """
    if algorithm not in DEFAULT_LOOPER_NAMES:
        return ()
    blocks = {"remom": looper.remom, "fusion": looper.fusion, "workflows": looper.flow}
    block = blocks[algorithm]
    authored = () if block is None else block.model_names or ()
    return tuple(map(str.strip, authored)) or (DEFAULT_LOOPER_NAMES[algorithm],)


def is_regex_method(method: str | None) -> bool:
    """Return whether the keywords of a rule with this `method` are regular expressions."""
    return method is not None and method.lower() == "regex"


def is_proxy_header(name: str) -> bool:
    """Return whether no plugin may set or remove the header: it controls the proxy in front."""
    return name.strip().lower().startswith("x-envoy-")
