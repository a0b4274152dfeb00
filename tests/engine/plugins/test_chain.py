"""The chain: all edits of one decision, merged and spliced once."""

import json
from typing import Any, ClassVar

import attrs
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.plugins.matchers import matches
from tests.engine.plugins.sites import PLUGINS, SITE
from tests.reference_dir import reference_dir
from tests.strategies import CHAT_REQUESTS, json_texts
from vsr.codec.edits import Changes, Draft
from vsr.codec.envelope import open_envelope
from vsr.codec.reasoning import ReasoningWish, Transport, compile_reasoning
from vsr.engine.plugins.chain import PluginChain, compile_chain
from vsr.engine.plugins.plugin import Capability, Contribution, Plugin, Site, Stage
from vsr.errors import ConfigRejected
from vsr.registry import Extension, Registry
from vsr.resources.plugin import (
    FastResponse,
    HeaderMutation,
    RequestParams,
    SystemPrompt,
    SystemPromptMode,
)
from vsr.resources.reasoning import ReasoningFamily, ReasoningKind
from vsr.routing.effect import HeaderEdit

SWITCH = ReasoningFamily(ReasoningKind.CHAT_TEMPLATE_KWARGS, "enable_thinking")
MODEL: Changes = {"model": b'"m-1"'}


def chain_of(*resources: object, wish: ReasoningWish | None = None) -> PluginChain:
    """Return the chain of these plugins, with reasoning if a wish is given."""
    edit = compile_reasoning(SWITCH, Transport.TEMPLATE, wish) if wish is not None else None
    return compile_chain(resources, SITE, PLUGINS, () if edit is None else (edit,))


def resources_of(plugins: list[dict[str, Any]]) -> list[object]:
    """Return a document's plugins as resources."""
    found: list[object] = []
    for plugin in plugins:
        it = plugin["configuration"]
        match plugin["type"]:
            case "system_prompt":
                found.append(SystemPrompt(it["system_prompt"], SystemPromptMode(it["mode"])))
            case "header_mutation":
                pairs = [*it.get("add", ()), *it.get("update", ())]
                sets = tuple((pair["name"].encode(), pair["value"].encode()) for pair in pairs)
                removals = tuple(name.encode() for name in it.get("delete", ()))
                found.append(HeaderMutation(sets, removals))
            case "request_params":
                found.append(
                    RequestParams(
                        tuple(it["blocked_params"]), max_tokens_limit=it["max_tokens_limit"]
                    )
                )
            case other:
                raise NotImplementedError(other)
    return found


def test_chain_without_plugins_changes_what_the_router_wants() -> None:
    """Then only the model's name differs."""
    chain = chain_of()

    draft = chain.draft(open_envelope(b'{"a":1.0, "model":"auto"}'), MODEL)

    assert draft.body() == b'{"a":1.0, "model":"m-1"}'
    assert chain == PluginChain()


def test_order_of_the_document_has_no_influence() -> None:
    """The client's members are judged, then the Router adds its own, then the prompt."""
    resources = [
        SystemPrompt("P"),
        HeaderMutation(sets=((b"x-a", b"1"),), removals=(b"x-b",)),
        RequestParams(strip_unknown=True),
        FastResponse("No."),
    ]
    body = b'{"model":"auto","messages":[],"chat_template_kwargs":{"x":1},"foo":1}'
    wish = ReasoningWish(use_reasoning=True)

    chains = [chain_of(*order, wish=wish) for order in (resources, reversed(resources))]

    for chain in chains:
        assert chain.draft(open_envelope(body), MODEL).body() == (
            b'{"model":"m-1","messages":[{"role":"system","content":"P"}],'
            b'"chat_template_kwargs":{"enable_thinking":true}}'
        )
        assert chain.edits == (HeaderEdit(b"x-a", b"1"),)
        assert chain.removes == {b"x-b"}
        assert chain.answer is not None


def test_members_of_the_routers_own_are_not_judged() -> None:
    """Forced usage and reasoning stand, though clients may not use those members."""
    chain = chain_of(
        RequestParams(("stream_options", "chat_template_kwargs")), wish=ReasoningWish()
    )
    changes = {**MODEL, "stream_options": b'{"include_usage":true}'}

    draft = chain.draft(open_envelope(b'{"model":"a","stream":true}'), changes)

    assert json.loads(draft.body() or b"") == {
        "model": "m-1",
        "stream": True,
        "stream_options": {"include_usage": True},
        "chat_template_kwargs": {"enable_thinking": False},
    }


def test_stream_options_go_with_a_blocked_stream() -> None:
    """Without a stream a backend refuses them."""
    chain = chain_of(RequestParams(("stream",)))
    changes = {**MODEL, "stream_options": b'{"include_usage":true}'}

    draft = chain.draft(open_envelope(b'{"model":"a","stream":true,"x":1}'), changes)

    assert draft.body() == b'{"model":"m-1","x":1}'


def test_first_plugin_of_a_type_counts() -> None:
    """A second one of the same type is as good as absent."""
    chain = chain_of(SystemPrompt("first"), SystemPrompt("second"))

    draft = chain.draft(open_envelope(b'{"model":"a","messages":[]}'), {})

    assert draft.body() == b'{"model":"a","messages":[{"role":"system","content":"first"}]}'


@attrs.frozen
class Marker:
    """Resource of a plugin from elsewhere."""


@attrs.frozen
class MarkerPlugin:
    """Marks the body with its decision."""

    resource: ClassVar[type[object]] = Marker
    stage: ClassVar[Stage] = Stage.PROMPT
    capability: ClassVar[Capability] = Capability.REQUEST_SAFE

    config: Marker
    site: Site

    @property
    def contribution(self) -> Contribution:
        """Return the edit."""
        return Contribution(body=self.edit)

    def edit(self, draft: Draft) -> Changes:
        """Return the mark, once."""
        return {} if "mark" in draft else {"mark": json.dumps(self.site.decision).encode()}


def test_plugin_from_elsewhere_is_found_by_its_resource() -> None:
    """A registry with it suffices; one without it refuses the document."""
    known: Registry[Plugin] = Registry("plugin", [Extension[Plugin]("marker", MarkerPlugin)])

    chain = compile_chain([Marker()], SITE, known)

    assert chain.draft(open_envelope(b"{}"), {}).body() == b'{"mark":"guard"}'
    with pytest.raises(ConfigRejected, match="Marker"):
        compile_chain([Marker()], SITE, PLUGINS)


@given(data=st.data(), request=CHAT_REQUESTS, is_on=st.booleans())
def test_chain_equals_its_edits_one_after_the_other(
    data: st.DataObject,
    request: dict[str, object],
    is_on: bool,  # noqa: FBT001  # drawn
) -> None:
    """One splice of all changes gives what a splice after each edit would."""
    chain = chain_of(
        SystemPrompt("P"),
        RequestParams(("tools",), max_tokens_limit=9),
        wish=ReasoningWish(use_reasoning=is_on),
    )
    body = data.draw(json_texts(request)).encode()

    once = chain.draft(open_envelope(body), MODEL).body()

    for edit in (*chain.params, lambda _: MODEL, *chain.body):
        envelope = open_envelope(body)
        body = envelope.spliced(edit(Draft(envelope)))
    assert once == body


def test_body_comes_out_as_in_the_reference() -> None:
    """The phase fixture of a whole automatic route: its body and the plugin's headers."""
    file = reference_dir() / "phase-fixtures" / "08-auto-routing-full.yaml"
    fixture = yaml.safe_load(file.read_text())
    [decision] = fixture["config"]["routing"]["decisions"]
    step = fixture["steps"][1]
    chain = chain_of(*resources_of(decision["plugins"]), wish=ReasoningWish(use_reasoning=True))
    body = json.dumps(step["send"]["request_body"]["json"]).encode()
    changes = {
        "model": b'"org/large-70b"',
        "stream_options": b'{"extra":1,"include_usage":true}',
    }

    draft = chain.draft(open_envelope(body), changes)

    assert matches(json.loads(draft.body() or b""), step["expect"]["body"]["json"])
    assert chain.edits == (HeaderEdit(b"x-team", b"alpha"), HeaderEdit(b"x-tier", b"gold"))
    assert chain.removes == {b"x-drop-me"}


@pytest.mark.parametrize(
    ("name", "decision"),
    [("auto-code-route", "code_route"), ("auto-urgent-route", "urgent_route")],
)
def test_bodies_come_out_as_in_the_parity_records(name: str, decision: str) -> None:
    """The client's order of members is the reference's here, so the bytes are equal."""
    folder = reference_dir() / "parity-corpus"
    config = yaml.safe_load((folder / "config.yaml").read_text())
    cases = yaml.safe_load((folder / "cases.yaml").read_text())
    expected = yaml.safe_load((folder / "expected.yaml").read_text())[name]["upstream"]["body"]
    [case] = [case for case in cases["cases"] if case["name"] == name]
    [wanted] = [it for it in config["routing"]["decisions"] if it["name"] == decision]
    models = {it["name"]: it["provider_model_id"] for it in config["providers"]["models"]}
    model = models[wanted["modelRefs"][0]["model"]]
    body = case["request"]["body"]
    chain = chain_of(*resources_of(wanted.get("plugins", [])))

    draft = chain.draft(open_envelope(body.encode()), {"model": json.dumps(model).encode()})

    assert draft.body() == expected.encode()
