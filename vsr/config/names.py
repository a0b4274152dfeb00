"""Small readings of the document that validation and compilation must share."""

from vsr.config.document import RouterSettings

PUBLISHED_AUTO_NAME = "vllm-sr/auto"
DEFAULT_AUTO_NAMES = (PUBLISHED_AUTO_NAME, "auto")
"""Automatic model names beside `auto_model_name`. Source: the reference."""


def auto_names(router: RouterSettings) -> tuple[str, ...]:
    """Return the model names that run the default recipe, in order, each once."""
    names = router.auto_model_names
    if names is None:
        names = (*DEFAULT_AUTO_NAMES, router.auto_model_name)
    return tuple(dict.fromkeys(names))


def is_regex_method(method: str | None) -> bool:
    """Return whether the keywords of a rule with this `method` are regular expressions."""
    return method is not None and method.lower() == "regex"
