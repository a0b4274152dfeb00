"""Messages without the credentials of the document that they are about."""

from collections.abc import Iterator, Mapping

import attrs

from vsr.config.environment import Expanded
from vsr.config.position import Value
from vsr.config.show import REDACTED

CREDENTIAL_KEYS = frozenset(
    {
        "access_key",
        "api_key",
        "api_keys",
        "auth_token",
        "backend_config",
        "env",
        "extra_headers",
        "headers",
        "password",
        "value",
    }
)
"""Keys of all fields that are marked as secrets, whatever class they are of."""
_UNSURE_KEYS = frozenset({"backend_config", "env", "headers", "value"})
"""Of these, other fields too; what is as short as an ordinary word is taken for one."""
_VARIABLE_KEYS = frozenset({"api_key_env"})
_SHORTEST = 4
"""Shorter ones are replaced in quotes only: they are parts of ordinary words."""
_SHORTEST_UNSURE = 8
_SHORTEST_EXPANSION = 6
"""Of what the environment gave to a value that is no secret by its place."""


@attrs.frozen
class Redactor:
    """Knows the credentials that must not be shown."""

    secrets: tuple[str, ...] = attrs.field(default=(), repr=False)
    """The longest first: one may be a part of another."""

    @classmethod
    def of(
        cls, values: Value, environ: Mapping[str, str], files: Mapping[str, bytes]
    ) -> "Redactor":
        """Return what knows those of a document, valid or not.

        Args:
            values: of it, as far as they could be read.
            environ: resolves names of variables.
            files: what it names holds, by the path that it writes.
        """
        found = {*_secrets(values, environ, shortest=None)}
        for content in files.values():
            found.add(content.decode("utf-8", "replace").strip())
        return cls(tuple(sorted(found - {""}, key=len, reverse=True)))

    def clean(self, text: str) -> str:
        """Return `text` with every credential replaced."""
        for secret in self.secrets:
            if secret in text:
                text = text.replace(repr(secret), REDACTED)
                text = text if len(secret) < _SHORTEST else text.replace(secret, REDACTED)
        return text


def _secrets(value: Value, environ: Mapping[str, str], *, shortest: int | None) -> Iterator[str]:
    """Yield what must not be shown; `shortest` is of secrets here, None: there are none."""
    if isinstance(value, dict):
        for key, item in value.items():
            if key in _VARIABLE_KEYS and isinstance(item, str):
                yield environ.get(item, "")
            yield from _secrets(item, environ, shortest=_shortest(key, item, shortest))
    elif isinstance(value, list):
        for item in value:
            yield from _secrets(item, environ, shortest=shortest)
    elif isinstance(value, Expanded):
        shortest = _SHORTEST_EXPANSION if shortest is None else shortest
        yield from [str(value)] if len(value) >= shortest else ()
    elif shortest is not None and isinstance(value, str | int | float) and value is not True:
        yield from [str(value)] if len(str(value)) >= shortest else ()


def _shortest(key: str, item: Value, above: int | None) -> int | None:
    if above is not None or key not in CREDENTIAL_KEYS:
        return above
    if key == "env" and isinstance(item, str):
        return None  # the name of a variable, beside the role of a token
    return _SHORTEST_UNSURE if key in _UNSURE_KEYS else 1
