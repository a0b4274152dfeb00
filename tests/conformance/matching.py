"""The matchers of the phase fixtures. Source: the README beside them."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

_ABSENT = object()
_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "int": int,
    "string": str,
    "list": list,
    "object": dict,
}


class Matching:
    """Compares values with what a fixture expects; bound names live as long as this."""

    def __init__(self) -> None:
        self.bound: dict[str, Any] = {}
        self._special: Mapping[str, Callable[[Any, Any], bool]] = {
            "$exact": lambda wanted, got: _without_nulls(got) == _without_nulls(wanted),
            "$regex": lambda wanted, got: isinstance(got, str) and bool(re.search(wanted, got)),
            "$contains": lambda wanted, got: all(self._holds(each, got) for each in wanted),
            "$not_contains": lambda wanted, got: not any(self._holds(each, got) for each in wanted),
            "$absent": lambda _, got: got is _ABSENT or got is None,
            "$any": lambda _, got: got is not _ABSENT and got is not None,
            "$type": lambda wanted, got: isinstance(got, _TYPES[wanted]),
            "$bind": lambda wanted, got: self.bound.setdefault(wanted, got) == got,
            "$json": lambda wanted, got: not list(self.differences(wanted, json.loads(got))),
        }

    def differences(self, wanted: Any, got: Any, path: str = "") -> Iterator[str]:  # noqa: ANN401  # JSON
        """Yield what of `got` is not as `wanted`."""
        if isinstance(wanted, dict):
            yield from self._in_object(wanted, got, path)
        elif isinstance(wanted, list) and isinstance(got, list) and len(wanted) == len(got):
            for at, (each, value) in enumerate(zip(wanted, got, strict=True)):
                yield from self.differences(each, value, f"{path}[{at}]")
        elif wanted != got:
            yield f"{path}: {_shown(got)}, not {wanted!r}"

    def _in_object(self, wanted: dict[str, Any], got: Any, path: str) -> Iterator[str]:  # noqa: ANN401  # JSON
        special = next((name for name in wanted if name.startswith("$")), None)
        if special is not None:
            if not self._special[special](wanted[special], got):
                yield f"{path}: {_shown(got)} is not {wanted!r}"
        elif not isinstance(got, dict):
            yield f"{path}: {_shown(got)} is no object"
        else:
            for name, value in wanted.items():
                yield from self.differences(value, got.get(name, _ABSENT), f"{path}.{name}")

    def _holds(self, wanted: Any, got: Any) -> bool:  # noqa: ANN401  # JSON
        if isinstance(got, str):
            return wanted in got
        return isinstance(got, list) and any(not list(self.differences(wanted, it)) for it in got)


def _shown(value: object) -> str:
    return "nothing" if value is _ABSENT else repr(value)


def _without_nulls(value: Any) -> Any:  # noqa: ANN401  # JSON
    if isinstance(value, dict):
        return {name: _without_nulls(it) for name, it in value.items() if it not in (None, "")}
    return [_without_nulls(it) for it in value] if isinstance(value, list) else value
