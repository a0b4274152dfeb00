"""The credential chain: whose key a call to a backend carries."""

from collections.abc import Iterable, Mapping

import msgspec

from vsr.config.backend import Backend
from vsr.config.document.root import Document
from vsr.config.document.services import AuthzConfig, AuthzProviderConfig
from vsr.config.providers import INJECTION_HEADERS
from vsr.resources.cluster import UserKeys

_INJECTED = "header-injection"
_OF_NO_PROVIDER = "vllm"
"""What a backend is that names no provider."""


class CredentialChain(msgspec.Struct, frozen=True):
    """`global.services.authz`, normalised; the first key that is found wins."""

    injections: tuple[Mapping[str, str], ...]
    """Provider to the header of a user's own key, for each link that injects one."""
    ahead_of_static: int
    """How many of them come before the configured key."""
    uses_static: bool
    """Whether configured keys are used at all."""
    fails_open: bool

    def credential(self, backend: Backend, key: str | None) -> tuple[bytes, bytes] | None:
        """Return the header line by which `key`, the configured one, gets to `backend`."""
        if key is None or backend.auth_header is None or not self.uses_static:
            return None
        return backend.auth_header.encode(), _prefix(backend) + key.encode()

    def user_keys(self, backend: Backend, *, has_credential: bool) -> UserKeys | None:
        """Return how a user's own key gets to `backend`; None if nobody is asked for one."""
        links = self.injections[: self.ahead_of_static] if has_credential else self.injections
        asked = [headers[backend.provider] for headers in links if backend.provider in headers]
        is_required = not (has_credential or self.fails_open)
        if backend.auth_header is None or not (asked or is_required):
            return None
        return UserKeys(
            asked=tuple(dict.fromkeys(name.strip().lower().encode() for name in asked)),
            header=backend.auth_header.encode(),
            prefix=_prefix(backend),
            is_required=is_required,
        )

    @property
    def header_names(self) -> frozenset[bytes]:
        """Return every header that the chain reads a key from."""
        names = (name for headers in self.injections for name in headers.values())
        return frozenset(name.strip().lower().encode() for name in names)


_DEFAULT = CredentialChain(
    (INJECTION_HEADERS,), ahead_of_static=1, uses_static=True, fails_open=True
)
"""Source: the reference's chain of a document that configures none."""


def credential_chain(document: Document) -> CredentialChain:
    """Return the chain of `document`, which was found valid."""
    authz = document.global_.services.authz
    if authz is None or not authz.providers:
        return _DEFAULT
    return _authored(authz, _providers(document))


def _authored(authz: AuthzConfig, providers: frozenset[str]) -> CredentialChain:
    types = [str(link.type) for link in authz.providers]
    uses_static = "static-config" in types
    last = types.index("static-config") if uses_static else len(types)
    return CredentialChain(
        injections=tuple(_injections(authz.providers, providers)),
        ahead_of_static=types[:last].count(_INJECTED),
        uses_static=uses_static,
        fails_open=authz.fail_open,
    )


def _injections(
    links: Iterable[AuthzProviderConfig], providers: frozenset[str]
) -> Iterable[Mapping[str, str]]:
    """Return what each injecting link says; one that says nothing uses the providers' own names.

    A backend that names no provider goes by what is written for `openai`, as in the reference, but
    only where no other backend is of that provider: a user's key for it must not reach a server
    of somebody else.
    """
    for link in links:
        if link.type != _INJECTED:
            continue
        headers = link.headers or INJECTION_HEADERS
        if link.headers and "openai" in headers and "openai" not in providers:
            headers = {_OF_NO_PROVIDER: headers["openai"], **headers}
        yield headers


def _providers(document: Document) -> frozenset[str]:
    models = document.providers.models
    return frozenset(ref.provider for model in models for ref in model.backend_refs)


def _prefix(backend: Backend) -> bytes:
    return f"{backend.auth_prefix} ".encode() if backend.auth_prefix else b""
