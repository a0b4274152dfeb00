"""What serving one model for one decision comes to; all of it is known at activation."""

from collections.abc import Mapping

import attrs
import msgspec

from vsr.resources.cluster import Cluster
from vsr.routing.effect import Effect, HeaderEdit
from vsr.routing.plan import Label

CREDENTIAL_HEADERS = frozenset(
    b"x-user-%b-key" % provider
    for provider in (
        b"anthropic",
        b"azure-openai",
        b"bedrock",
        b"cloudflare-workers-ai",
        b"gemini",
        b"minimax",
        b"openai",
        b"vertex-ai",
    )
)
"""Where a trusted authenticator puts a user's own provider keys; they never travel on.

Source: the reference's parity records, removal list of the request-body phase.
"""


DIAGNOSTIC_HEADERS = frozenset(
    {
        b"x-vsr-effective-input-tokens",
        b"x-vsr-effective-max-output-tokens",
    }
)
"""What only the Router may say of an answer. Source: as above, response-header phase."""


_LATENCY = (b"x-vsr-routing-latency-ms", b"")


@attrs.frozen
class Keystone:
    """The response headers that say which schema, path and configuration answered."""

    version: int

    def edits(self, response_path: bytes) -> tuple[HeaderEdit, ...]:
        """Return them for one response path (`upstream`, `error`, ...)."""
        return (
            HeaderEdit(b"x-vsr-schema-version", b"2"),
            HeaderEdit(b"x-vsr-response-path", response_path),
            self.version_edit,
        )

    @property
    def version_edit(self) -> HeaderEdit:
        """Return the configuration version alone."""
        return HeaderEdit(b"x-vsr-config-version", b"%d" % self.version)


@attrs.frozen
class Choice:
    """Why a model serves: the members that response headers and evidence show."""

    recipe: str | None = None
    decision: str | None = None
    method: str | None = None
    is_match_all: bool = False
    """Whether the decision has no condition; only then is its confidence, 0, reported."""


@attrs.frozen
class Target:
    """One model ready to serve for one choice."""

    alias: str
    choice: Choice
    label: Label
    model_json: bytes
    """The backend's model name as a JSON string."""
    as_it_is: Effect = attrs.field(repr=False)
    """Makes the client's request the backend's when its body already is."""
    rewritten: Effect = attrs.field(repr=False)
    """The same for a new body, to be completed with its length."""
    answered: Effect
    """Tells the client of a whole answer, to be completed with the routing latency."""
    streamed: Effect
    """The same for an event stream."""


def make_target(cluster: Cluster, choice: Choice, keystone: Keystone) -> Target:
    """Return what serving `cluster` for `choice` does to a request and to its answer."""
    lines = list(cluster.route_headers)
    if cluster.credential is not None:
        lines.append(cluster.credential)
    lines.append((b"x-selected-model", cluster.name.encode()))
    lines.append((b":path", cluster.chat_path.encode()))
    edits = tuple(HeaderEdit(name, value) for name, value in lines)
    success = keystone.edits(b"upstream") + _choice_edits(choice, cluster.name)
    removed = DIAGNOSTIC_HEADERS | {b"content-length", _LATENCY[0]}
    return Target(
        alias=cluster.name,
        choice=choice,
        label=Label(choice.recipe, choice.decision, cluster.name),
        model_json=msgspec.json.encode(cluster.upstream_model),
        as_it_is=Effect(CREDENTIAL_HEADERS, edits, clear_route_cache=True),
        rewritten=Effect(
            CREDENTIAL_HEADERS | {b"content-length"},
            edits,
            clear_route_cache=True,
            last=(b"content-length", b""),
        ),
        answered=Effect(removed, success, last=_LATENCY),
        streamed=Effect(removed, success, stream_response=True, last=_LATENCY),
    )


def _choice_edits(choice: Choice, alias: str) -> tuple[HeaderEdit, ...]:
    values: Mapping[bytes, str | None] = {
        b"x-vsr-selected-recipe": choice.recipe,
        b"x-vsr-selected-decision": choice.decision,
        b"x-vsr-selected-confidence": "0.0000" if choice.is_match_all else None,
        b"x-vsr-selected-algorithm": choice.method,
        b"x-vsr-selected-model": alias,
    }
    return tuple(HeaderEdit(name, value.encode()) for name, value in values.items() if value)
