"""Every class of the document, by name."""

import importlib
import pkgutil
from collections.abc import Mapping

from vsr.config import document
from vsr.config.document.objects import DocumentObject, fields_of


def _classes() -> dict[str, type[DocumentObject]]:
    found: dict[str, type[DocumentObject]] = {}
    for module in pkgutil.iter_modules(document.__path__):
        members = vars(importlib.import_module(f"{document.__name__}.{module.name}"))
        found |= {
            cls.__name__: cls
            for cls in members.values()
            if isinstance(cls, type) and cls is not DocumentObject
            if issubclass(cls, DocumentObject)
        }
    return found


CLASSES: Mapping[str, type[DocumentObject]] = _classes()


def keys_of(cls: type[DocumentObject]) -> set[str]:
    """Return the keys that a class of the document takes."""
    return set(fields_of(cls))
