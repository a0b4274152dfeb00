"""Reasoning: what a decision's wish does to a request, by family and transport."""

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.codec.test_edits import OBJECTS
from tests.engine.plugins.matchers import matches
from tests.reference_dir import reference_dir
from tests.strategies import json_texts
from vsr.codec.dialects import dialect_of
from vsr.codec.edits import Draft
from vsr.codec.envelope import open_envelope
from vsr.codec.reasoning import ReasoningWish, Transport, compile_reasoning
from vsr.config.providers import REASONING_TRANSPORTS
from vsr.config.reasoning_families import REASONING_FAMILIES
from vsr.errors import InvalidRequest
from vsr.resources.reasoning import ReasoningFamily, ReasoningKind, ReasoningMode

FAMILY = REASONING_FAMILIES
ON = ReasoningWish(use_reasoning=True)
OFF = ReasoningWish()
INLINE_EFFORT = ReasoningFamily(ReasoningKind.REASONING_EFFORT, "reasoning_effort")


def rewritten(
    body: bytes, family: ReasoningFamily | None, transport: Transport, wish: ReasoningWish
) -> bytes:
    """Return the body that the model gets."""
    edit = compile_reasoning(family, transport, wish)
    draft = Draft(open_envelope(body))
    if edit is not None:
        draft.merge(edit(draft))
    return draft.body() or body


@pytest.mark.parametrize(
    ("family", "wish", "sent", "expected"),
    [
        ("qwen3", ON, "", '"chat_template_kwargs":{"enable_thinking":true}'),
        ("qwen3", OFF, "", '"chat_template_kwargs":{"enable_thinking":false}'),
        (
            "qwen3",
            ON,
            '"reasoning_effort":"high"',
            '"chat_template_kwargs":{"enable_thinking":true}',
        ),
        (
            "deepseek-v3.1",
            OFF,
            '"chat_template_kwargs":{"thinking":true, "x":1.50}',
            '"chat_template_kwargs":{"thinking":false, "x":1.50}',
        ),
        ("gpt-oss", ON, "", '"chat_template_kwargs":{"reasoning_effort":"medium"}'),
        ("gpt-oss", OFF, "", '"chat_template_kwargs":{"reasoning_effort":"low"}'),
        (
            "gpt-oss",
            OFF,
            '"reasoning_effort":"high"',
            '"chat_template_kwargs":{"reasoning_effort":"high"}',
        ),
        ("gpt", OFF, "", '"chat_template_kwargs":{"reasoning_effort":"none"}'),
        ("hunyuan-hy3", OFF, "", '"chat_template_kwargs":{"reasoning_effort":"no_think"}'),
        ("deepseek", OFF, "", '"chat_template_kwargs":{"reasoning_effort":"none"}'),
        (
            "qwen3.8",
            ON,
            "",
            '"chat_template_kwargs":{"reasoning_effort":"xhigh","enable_thinking":true}',
        ),
        (
            "qwen3.8",
            OFF,
            '"chat_template_kwargs":{"reasoning_effort":"low"}',
            '"chat_template_kwargs":{"enable_thinking":false}',
        ),
        ("nemotron-super", ON, "", '"chat_template_kwargs":{"enable_thinking":true}'),
        (
            "nemotron-super",
            ReasoningWish(use_reasoning=True, effort="low"),
            '"chat_template_kwargs":{"reasoning_effort":"high"}',
            '"chat_template_kwargs":{"enable_thinking":true,"low_effort":true}',
        ),
        (
            "nemotron-super",
            OFF,
            '"chat_template_kwargs":{"low_effort":true}',
            '"chat_template_kwargs":{"enable_thinking":false}',
        ),
        ("minimax-m3", ON, "", '"chat_template_kwargs":{"thinking_mode":"adaptive"}'),
        ("minimax-m3", OFF, "", '"chat_template_kwargs":{"thinking_mode":"disabled"}'),
        (
            "minimax-m3",
            ReasoningWish(mode="enabled"),
            "",
            '"chat_template_kwargs":{"thinking_mode":"enabled"}',
        ),
        ("qwen3-always-on", OFF, '"reasoning_effort":"high"', '"reasoning_effort":"high"'),
        (
            "kimi-k3",
            OFF,
            '"reasoning_effort":null',
            '"chat_template_kwargs":{"reasoning_effort":"low"}',
        ),
        ("qwen3.8-always-on", OFF, "", '"chat_template_kwargs":{"reasoning_effort":"low"}'),
    ],
)
def test_template_transport(family: str, wish: ReasoningWish, sent: str, expected: str) -> None:
    """Self-hosted runtimes take arguments of the chat template; others of theirs are kept."""
    body = f'{{"model":"m"{sent and ","}{sent}}}'.encode()

    after = rewritten(body, FAMILY[family], Transport.TEMPLATE, wish)

    assert after == f'{{"model":"m",{expected}}}'.encode()


def test_template_transport_has_no_low_effort_for_a_family_without_one() -> None:
    """A level that the model doesn't know is not sent."""
    family = ReasoningFamily(
        ReasoningKind.REASONING_EFFORT,
        "reasoning_effort",
        levels=("high",),
        modes=(ReasoningMode.ENABLED,),
    )

    after = rewritten(b'{"model":"m"}', family, Transport.TEMPLATE, OFF)

    assert after == b'{"model":"m"}'


@pytest.mark.parametrize(
    ("family", "wish", "sent", "expected"),
    [
        ("gpt", ON, "", '"reasoning_effort":"medium"'),
        ("gpt", ON, '"reasoning_effort":"low"', '"reasoning_effort":"medium"'),
        ("gpt", OFF, '"reasoning_effort":"low"', '"reasoning_effort":"none"'),
        ("gpt-oss", OFF, '"reasoning_effort":"low"', '"reasoning_effort":"low"'),
        ("gpt-oss", OFF, "", ""),
        (
            "gpt",
            ON,
            '"chat_template_kwargs":{"reasoning_effort":"low"},"reasoning":{"effort":"low"}',
            '"reasoning_effort":"medium"',
        ),
        ("muse-glimmer", ON, '"reasoning_effort":"low"', '"reasoning_strength":"high"'),
        ("qwen3", ON, "", '"chat_template_kwargs":{"enable_thinking":true}'),
        ("minimax-m3", OFF, "", '"chat_template_kwargs":{"thinking_mode":"disabled"}'),
    ],
)
def test_top_level_transport(family: str, wish: ReasoningWish, sent: str, expected: str) -> None:
    """Efforts are members of the request; what has no effort stays with the template."""
    body = f'{{"model":"m"{sent and ","}{sent}}}'.encode()

    after = rewritten(body, FAMILY[family], Transport.TOP_LEVEL_EFFORT, wish)

    assert after == f'{{"model":"m"{expected and ","}{expected}}}'.encode()


@pytest.mark.parametrize(
    ("transport", "family", "wish", "sent", "expected"),
    [
        (Transport.REASONING_OBJECT, "gpt", ON, "", '"reasoning":{"effort":"medium"}'),
        (
            Transport.REASONING_OBJECT,
            "gpt",
            ON,
            '"reasoning":{"max_tokens":5,"exclude":true}',
            '"reasoning":{"exclude":true,"effort":"medium"}',
        ),
        (Transport.REASONING_OBJECT, "gpt", OFF, "", '"reasoning":{"effort":"none"}'),
        (Transport.REASONING_OBJECT, "qwen3", ON, "", '"reasoning":{"enabled":true}'),
        (
            Transport.REASONING_OBJECT,
            "qwen3",
            OFF,
            '"chat_template_kwargs":{"enable_thinking":true},"reasoning":{"effort":"high"}',
            '"reasoning":{"enabled":false}',
        ),
        (Transport.REASONING_OBJECT, "gpt-oss", OFF, '"reasoning":{}', '"reasoning":{}'),
        (Transport.THINKING_OBJECT, "glm", ON, "", '"thinking":{"type":"enabled"}'),
        (
            Transport.THINKING_OBJECT,
            "glm-5.2",
            OFF,
            '"reasoning_effort":"max","thinking":{"type":"enabled","clear_thinking":false}',
            '"thinking":{"type":"disabled","clear_thinking":false}',
        ),
        (Transport.THINKING_OBJECT, "glm-5.3", OFF, '"thinking":{}', '"thinking":{}'),
        (
            Transport.OUTPUT_CONFIG_EFFORT,
            "claude-effort-adaptive",
            ON,
            '"reasoning_effort":"low","output_config":{"format":null}',
            '"output_config":{"format":null,"effort":"high"}',
        ),
        (
            Transport.OUTPUT_CONFIG_EFFORT,
            "claude-effort-adaptive",
            OFF,
            '"output_config":{"effort":"low"}',
            '"output_config":{"effort":"low"}',
        ),
        (
            Transport.OUTPUT_CONFIG_EFFORT,
            "gpt",
            OFF,
            "",
            '"output_config":{"reasoning_effort":"none"}',
        ),
        (Transport.OUTPUT_CONFIG_EFFORT, "qwen3", ON, '"x":1', '"x":1'),
        (
            Transport.DEEPSEEK_THINKING,
            "deepseek",
            ON,
            '"chat_template_kwargs":{"x":1}',
            '"reasoning_effort":"high","thinking":{"type":"enabled"}',
        ),
        (
            Transport.DEEPSEEK_THINKING,
            "deepseek-v3.2",
            OFF,
            '"reasoning_effort":"high"',
            '"thinking":{"type":"disabled"}',
        ),
        (Transport.DEEPSEEK_THINKING, "gpt-oss", OFF, '"x":1', '"x":1'),
    ],
)
def test_object_transports(
    transport: Transport, family: str, wish: ReasoningWish, sent: str, expected: str
) -> None:
    """The switch is in an object of the provider's; the forms of other providers go."""
    body = f'{{"model":"m"{sent and ","}{sent}}}'.encode()

    after = rewritten(body, FAMILY[family], transport, wish)

    assert after == f'{{"model":"m",{expected}}}'.encode()


def test_reasoning_object_without_a_value_for_off_is_switched_off() -> None:
    """An effort family that knows no off value has the object's own switch."""
    after = rewritten(b"{}", INLINE_EFFORT, Transport.REASONING_OBJECT, OFF)

    assert after == b'{"reasoning":{"enabled":false}}'


@pytest.mark.parametrize("transport", Transport)
@pytest.mark.parametrize("wish", [ON, OFF])
def test_model_without_family_keeps_its_body(transport: Transport, wish: ReasoningWish) -> None:
    """Of such a model nothing is known, so the client's own fields pass."""
    assert compile_reasoning(None, transport, wish) is None


@pytest.mark.parametrize(
    ("wish", "family", "effort"),
    [
        (
            ReasoningWish(use_reasoning=True, effort="low", default_effort="high"),
            INLINE_EFFORT,
            "low",
        ),
        (ReasoningWish(use_reasoning=True, default_effort="high"), INLINE_EFFORT, "high"),
        (ReasoningWish(use_reasoning=True), FAMILY["grok-4.5"], "high"),
        (ReasoningWish(use_reasoning=True), INLINE_EFFORT, "medium"),
        (ReasoningWish(use_reasoning=True, default_effort="medium"), FAMILY["deepseek"], "high"),
        (
            ReasoningWish(use_reasoning=True),
            ReasoningFamily(ReasoningKind.REASONING_EFFORT, "e", levels=("low", "high", "max")),
            "high",
        ),
        (ReasoningWish(mode="adaptive"), INLINE_EFFORT, "medium"),
    ],
)
def test_effort_is_the_first_that_the_family_knows(
    wish: ReasoningWish, family: ReasoningFamily, effort: str
) -> None:
    """The reference's, else the document's, else the family's, else medium, else the middle one."""
    after = rewritten(b"{}", family, Transport.TOP_LEVEL_EFFORT, wish)

    assert json.loads(after) == {family.parameter: effort}


@pytest.mark.parametrize(
    ("wish", "evidence"),
    [
        (ReasoningWish(), "off"),
        (ReasoningWish(use_reasoning=True), "on"),
        (ReasoningWish(mode="adaptive"), "on"),
        (ReasoningWish(mode="enabled"), "on"),
        (ReasoningWish(use_reasoning=True, mode="disabled"), "off"),
    ],
)
def test_evidence_says_whether_the_model_reasons(wish: ReasoningWish, evidence: str) -> None:
    """A mode outweighs the plain switch; adaptive counts as on."""
    assert wish.evidence == evidence


@given(
    data=st.data(),
    members=OBJECTS,
    family=st.sampled_from(sorted(FAMILY)),
    transport=st.sampled_from(Transport),
    wish=st.sampled_from([ON, OFF, ReasoningWish(mode="adaptive")]),
)
def test_reasoning_touches_only_its_own_members(
    data: st.DataObject,
    members: dict[str, object],
    family: str,
    transport: Transport,
    wish: ReasoningWish,
) -> None:
    """All other members keep bytes and order, and doing it twice is doing it once."""
    own = data.draw(
        st.fixed_dictionaries(
            {},
            optional={
                "reasoning_effort": st.sampled_from(["low", None, 7]),
                "chat_template_kwargs": st.sampled_from([{"thinking": 1, "x": 2}, {}, None, "x"]),
                "reasoning": st.just({"effort": "low"}),
                "thinking": st.just({"type": "enabled"}),
            },
        )
    )
    body = data.draw(json_texts(members | own)).encode()
    before = open_envelope(body)

    once = rewritten(body, FAMILY[family], transport, wish)

    after = open_envelope(once)
    assert [(name, after.raw(name)) for name in after.members if name in members] == [
        (name, before.raw(name)) for name in members
    ]
    twice = rewritten(once, FAMILY[family], transport, wish)
    is_moved = before.raw("reasoning_effort") is not None and after.raw("reasoning_effort") is None
    assert twice == once or is_moved  # the client's effort is not where it was


@pytest.mark.parametrize("transport", [Transport.TEMPLATE, Transport.REASONING_OBJECT])
def test_ambiguous_arguments_are_refused(transport: Transport) -> None:
    """Two readers could disagree on a repeated name, so the request is."""
    body = b'{"chat_template_kwargs":{"x":1,"x":2},"reasoning":{"y":1,"y":2}}'

    with pytest.raises(InvalidRequest):
        rewritten(body, FAMILY["gpt"], transport, ON)


def test_reasoning_fields_come_out_as_in_the_reference() -> None:
    """The phase fixture of families and dialects."""
    file = reference_dir() / "phase-fixtures" / "29-reasoning-fields.yaml"
    cases = yaml.safe_load(file.read_text())["cases"]
    for case in cases:
        given_input: dict[str, Any] = case["input"]
        profile = given_input["profile"] or {"type": "vllm", "base_url": "http://10.0.0.1"}
        transport = REASONING_TRANSPORTS.get(profile["type"], Transport.TEMPLATE)
        dialect = dialect_of(profile["type"], profile["base_url"].split("/")[2], transport)
        family = ReasoningFamily(
            ReasoningKind(given_input["family"]["type"]), given_input["family"]["parameter"]
        )
        wish = ReasoningWish(use_reasoning=given_input["enabled"], effort=given_input["effort"])

        after = rewritten(
            json.dumps(given_input["body"]).encode(),
            family,
            dialect.reasoning_transport,
            wish,
        )

        assert matches({"output": json.loads(after)}, case["expect"]), (case["name"], after)
    assert cases
