"""What serving one model for one decision comes to; all of it is known at activation."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import attrs
import msgspec

from vsr.codec.dialects import dialect_of
from vsr.engine.endpoints import Protocol
from vsr.engine.plugins.chain import PluginChain, compile_chain
from vsr.engine.plugins.plugin import Plugin, Site
from vsr.engine.plugins.reasoning import ref_reasoning
from vsr.registry import Registry
from vsr.resources.cluster import ApiFormat, Cluster, UserKeys
from vsr.resources.plugin import SystemPrompt
from vsr.resources.profile import views
from vsr.resources.program import And, Decision, ModelRef
from vsr.resources.reliability import CallOverride, CallPolicy, FallbackPolicy
from vsr.routing.effect import Effect, HeaderEdit
from vsr.routing.plan import Label
from vsr.routing.request import USER_KEY_HEADERS

if TYPE_CHECKING:
    from vsr.engine.decision_graph import DecisionGraph

DIAGNOSTIC_HEADERS = frozenset(
    {
        b"x-vsr-effective-input-tokens",
        b"x-vsr-effective-max-output-tokens",
    }
)
"""What only the Router may say of an answer. Source: as above, response-header phase."""
KEYSTONE_EDITS = 3
"""How many edits `Keystone.edits` gives."""
UPSTREAM_PROTOCOL = b"x-vsr-upstream-protocol"
ANTHROPIC_VERSION = b"anthropic-version"
_DEFAULT_VERSION = b"2023-06-01"
_LENGTH = b"content-length"
_LATENCY = (b"x-vsr-routing-latency-ms", b"")


class Keystone(msgspec.Struct, frozen=True):
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


class Choice(msgspec.Struct, frozen=True):
    """Why a model serves: the members that response headers and evidence show."""

    recipe: str | None = None
    decision: str | None = None
    method: str | None = None
    is_match_all: bool = False
    """Whether the decision has no condition; only then is its confidence, 0, reported."""
    reasoning_mode: str = "off"


@attrs.frozen
class RequestEffects:
    """What makes a client's request the backend's."""

    as_it_is: Effect = attrs.field(repr=False)
    """Its body already is; holds the credential, as does the other."""
    rewritten: Effect = attrs.field(repr=False)
    """For a new body, to be completed with its length."""


class ReplyEffects(msgspec.Struct, frozen=True):
    """What tells the client of a success, to be completed with the routing latency."""

    answered: Effect
    streamed: Effect


@attrs.frozen(eq=False)
class Fallback:
    """The models of one decision, for calls that go on from one to another."""

    policy: FallbackPolicy
    site: Site = attrs.field(repr=False)
    """Of the fixed answer behind the last model."""
    targets: dict[str, "Target"] = attrs.field(factory=dict, repr=False)
    """In order of preference."""


@attrs.frozen
class Target:
    """One model ready to serve for one choice."""

    alias: str
    choice: Choice
    label: Label
    protocol: Protocol
    """What its backends speak."""
    model_json: bytes
    """The model name that the backend is asked for, as a JSON string."""
    chain: PluginChain
    user_keys: UserKeys | None
    """None: nobody is asked for a key of their own."""
    policy: CallPolicy | None
    """Timeouts and retries of its calls; None: the cluster's own."""
    cluster_policy: CallPolicy
    """That one."""
    fallback: Fallback | None = attrs.field(eq=False)
    """Where its failed calls may go on; None: nowhere."""
    is_plain: bool
    """Whether nothing of a request's body is changed but the model's name."""
    has_system_prompt: bool
    requests: RequestEffects = attrs.field(repr=False)
    versioned_requests: RequestEffects = attrs.field(repr=False)
    """The same for a client that says which version of the Messages API it means."""
    replies: Mapping[Protocol, ReplyEffects] = attrs.field(repr=False)
    """By the client's protocol."""
    failed: Mapping[Protocol, Effect] = attrs.field(repr=False)
    """What tells the client of a failure of the backend, by the client's protocol."""
    graph: "DecisionGraph | None" = attrs.field(default=None, eq=False, repr=False)
    """What answers for the decision instead of one call; None: nothing does."""
    variants: tuple["Target", ...] = attrs.field(default=(), eq=False, repr=False)
    """One for each profile of the cluster, this one being the first; empty if it has one only."""

    def policy_with(self, change: CallOverride | None) -> CallPolicy | None:
        """Return the policy of a call that is changed once more, by a step of a graph."""
        return self.policy if change is None else change.over(self.policy or self.cluster_policy)


class Workshop(msgspec.Struct, frozen=True):
    """What targets are made with."""

    keystone: Keystone
    plugins: Registry[Plugin]
    default_effort: str | None = None
    key_headers: frozenset[bytes] = USER_KEY_HEADERS
    """Request headers that may hold users' provider keys."""
    layers: tuple[CallOverride | None, ...] = ()
    """What the places that ask for targets change of calls, the outermost first."""

    def concrete(self, cluster: Cluster, *, adapter: str | None = None) -> Target:
        """Return the target of a model that a client names, or of an adapter of it.

        No recipe decides here, so no plugin runs and reasoning is the client's.
        """
        return _joined(
            self._make(view, Choice(), PluginChain(), adapter or view.upstream_model)
            for view in views(cluster)
        )

    def fallback(self, cluster: Cluster, adapter: str | None, recipe: str) -> Target:
        """Return the target of a recipe's requests that no decision takes."""
        return _joined(
            self._make(view, Choice(recipe), PluginChain(), adapter or view.upstream_model)
            for view in views(cluster)
        )

    def decided(
        self,
        cluster: Cluster,
        recipe: str,
        decision: Decision,
        ref: ModelRef,
        fallback: Fallback | None = None,
    ) -> Target:
        """Return the target of a decision's candidate.

        One that has a fallback is entered there.

        Raises:
            ConfigRejected: a plugin of the decision can't do what it is asked for.
        """
        target = _joined(
            self._decided(view, recipe, decision, ref, fallback) for view in views(cluster)
        )
        if fallback is not None:
            fallback.targets.setdefault(cluster.name, target)
        return target

    def _decided(
        self,
        cluster: Cluster,
        recipe: str,
        decision: Decision,
        ref: ModelRef,
        fallback: Fallback | None,
    ) -> Target:
        reasoning = ref_reasoning(cluster, ref, self.default_effort)
        host = cluster.endpoints[0].host if cluster.endpoints else ""
        site = Site(
            recipe=recipe,
            decision=decision.name,
            keystone=self.keystone.edits,
            dialect=dialect_of(cluster.provider, host, cluster.reasoning_transport),
            output_limit_tokens=cluster.max_output_tokens,
        )
        edits = [] if reasoning.edit is None else [reasoning.edit]
        match_all = decision.rules == And()
        choice = Choice(recipe, decision.name, decision.algorithm.type, match_all, reasoning.mode)
        chain = compile_chain(decision.plugins, site, self.plugins, edits)
        return self._make(
            cluster,
            choice,
            chain,
            ref.lora_name or cluster.upstream_model,
            decision=decision,
            fallback=fallback,
        )

    def fallback_of(self, recipe: str, decision: Decision) -> Fallback | None:
        """Return the fallback of a decision, without targets yet; None if it has none."""
        policy = decision.fallback
        if not policy.enabled or len(decision.model_refs) < 2:  # noqa: PLR2004  # one and another
            return None
        site = Site(recipe=recipe, decision=decision.name, keystone=self.keystone.edits)
        return Fallback(policy, site)

    def _make(
        self,
        cluster: Cluster,
        choice: Choice,
        chain: PluginChain,
        model: str,
        *,
        decision: Decision | None = None,
        fallback: Fallback | None = None,
    ) -> Target:
        plugins = () if decision is None else decision.plugins
        protocol = Protocol.OPENAI
        if cluster.api_format is ApiFormat.ANTHROPIC:
            protocol = Protocol.ANTHROPIC
        return Target(
            alias=cluster.name,
            choice=choice,
            label=Label(choice.recipe, choice.decision, cluster.name),
            protocol=protocol,
            model_json=msgspec.json.encode(model),
            chain=chain,
            user_keys=cluster.user_keys,
            cluster_policy=cluster.calls,
            policy=_policy(cluster, (*self.layers, None if decision is None else decision.calls)),
            fallback=fallback,
            is_plain=not (chain.params or chain.body),
            has_system_prompt=any(isinstance(it, SystemPrompt) for it in plugins),
            requests=self._requests(cluster, chain, adds_version=protocol is Protocol.ANTHROPIC),
            versioned_requests=self._requests(cluster, chain, adds_version=False),
            replies={
                client: self._replies(cluster.name, choice, client, protocol) for client in Protocol
            },
            failed={
                client: Effect(
                    DIAGNOSTIC_HEADERS,
                    self.keystone.edits(b"upstream") + _protocol_edits(client, protocol),
                )
                for client in Protocol
            },
        )

    def _replies(
        self, alias: str, choice: Choice, client: Protocol, upstream: Protocol
    ) -> ReplyEffects:
        edits = (
            *self.keystone.edits(b"upstream"),
            *_protocol_edits(client, upstream),
            *_choice_edits(choice, alias),
        )
        removed = DIAGNOSTIC_HEADERS | {_LATENCY[0]}
        # A body that is translated takes its length with it, in its own phase.
        whole = removed | {_LENGTH} if client is upstream else removed
        return ReplyEffects(
            answered=Effect(whole, edits, last=_LATENCY),
            streamed=Effect(removed | {_LENGTH}, edits, stream_response=True, last=_LATENCY),
        )

    def _requests(
        self, cluster: Cluster, chain: PluginChain, *, adds_version: bool
    ) -> RequestEffects:
        lines = list(cluster.route_headers)
        if cluster.credential is not None:
            lines.append(cluster.credential)
        if adds_version and ANTHROPIC_VERSION not in dict(lines):
            lines.append((ANTHROPIC_VERSION, _DEFAULT_VERSION))
        lines.append((b"x-selected-model", cluster.name.encode()))
        lines.append((b":path", cluster.chat_path.encode()))
        edits = (*(HeaderEdit(name, value) for name, value in lines), *chain.edits)
        removes = self.key_headers | chain.removes
        whole = removes | {_LENGTH}
        return RequestEffects(
            as_it_is=Effect(removes, edits, clear_route_cache=True),
            rewritten=Effect(whole, edits, clear_route_cache=True, last=(_LENGTH, b"")),
        )


def _joined(targets: Iterable[Target]) -> Target:
    """Return the first target with all of them as its variants."""
    first, *others = targets
    return attrs.evolve(first, variants=(first, *others)) if others else first


def _policy(cluster: Cluster, layers: Sequence[CallOverride | None]) -> CallPolicy | None:
    """Return what the layers make of the cluster's policy; None if they leave it as it is."""
    policy = layered(cluster.calls, layers)
    return None if policy == cluster.calls else policy


def layered(policy: CallPolicy, layers: Sequence[CallOverride | None]) -> CallPolicy:
    """Return what the layers make of a policy, the innermost last."""
    for layer in layers:
        if layer is not None:
            policy = layer.over(policy)
    return policy


def _protocol_edits(client: Protocol, upstream: Protocol) -> tuple[HeaderEdit, ...]:
    return () if client is upstream else protocol_edits(client, upstream)


def protocol_edits(client: Protocol, upstream: Protocol) -> tuple[HeaderEdit, ...]:
    """Return the response headers that name both protocols."""
    return (
        HeaderEdit(b"x-vsr-client-protocol", client.encode()),
        HeaderEdit(UPSTREAM_PROTOCOL, upstream.encode()),
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
