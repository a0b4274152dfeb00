"""Every class of the document, by name."""

import importlib
import pkgutil
from collections.abc import Mapping

import attrs

from vsr.config import document
from vsr.config.document import kinds
from vsr.config.document.kinds import key_of


def _classes() -> dict[str, type[attrs.AttrsInstance]]:
    found: dict[str, type[attrs.AttrsInstance]] = {}
    for module in pkgutil.iter_modules(document.__path__):
        members = vars(importlib.import_module(f"{document.__name__}.{module.name}"))
        found |= {
            cls.__name__: cls
            for cls in members.values()
            if isinstance(cls, type) and attrs.has(cls) and cls.__module__ != kinds.__name__
        }
    return found


CLASSES: Mapping[str, type[attrs.AttrsInstance]] = _classes()


def keys_of(cls: type[attrs.AttrsInstance]) -> set[str]:
    """Return the keys that a class of the document takes."""
    return {key_of(field.name) for field in attrs.fields(cls)}
