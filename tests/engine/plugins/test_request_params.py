"""Plugin `request_params`."""

import json

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.plugins.matchers import matches
from tests.engine.plugins.sites import SITE, edited
from tests.reference_dir import reference_dir
from tests.strategies import JSON_VALUES, json_texts
from vsr.codec.dialects import KNOWN_MEMBERS, dialect_of
from vsr.codec.envelope import open_envelope
from vsr.engine.plugins.plugin import Capability, Stage
from vsr.engine.plugins.request_params import RequestParamsPlugin
from vsr.errors import ConfigRejected
from vsr.resources.plugin import RequestParams

LIMITED = RequestParamsPlugin(RequestParams(max_tokens_limit=500, max_n=2), SITE)


@pytest.mark.parametrize("member", ["max_tokens", "max_completion_tokens"])
@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        ("9000", "500"),
        ("501", "500"),
        ("9000.0", "500"),
        ("9e3", "500"),
        ("1e400", "500"),
        ("9" * 5000, "500"),
        ("500", "500"),
        ("499.0", "499.0"),
        ("0", "0"),
        ("-1", "-1"),
        ("-1e400", "-1e400"),
        ("1.5", None),
        ("9000.5", None),
        ("-0.5", None),
        ('"9000"', '"9000"'),
        ("null", "null"),
        ("true", "true"),
        ("[9000]", "[9000]"),
    ],
)
def test_output_limit_is_capped(member: str, sent: str, expected: str | None) -> None:
    """Only a whole number above the cap is written anew; a fraction goes, another type stays."""
    body = f'{{"model":"m","{member}":{sent}}}'.encode()

    after = edited(LIMITED, body)

    if expected is None:
        assert after == b'{"model":"m"}'
    else:
        assert after == f'{{"model":"m","{member}":{expected}}}'.encode()


def test_number_of_choices_is_capped() -> None:
    """By its own limit, and where the client put it."""
    assert edited(LIMITED, b'{"n":5, "max_tokens":1}') == b'{"n":2, "max_tokens":1}'


@pytest.mark.parametrize(
    ("provider", "host", "sent", "expected"),
    [
        ("vllm", "x", "", '"max_tokens":64'),
        ("openai", "api.openai.com", "", '"max_completion_tokens":64'),
        ("vllm", "x", '"max_tokens":null', '"max_tokens":64'),
        ("vllm", "x", '"max_tokens":7', '"max_tokens":7'),
        ("vllm", "x", '"max_completion_tokens":7', '"max_completion_tokens":7'),
        ("vllm", "x", '"max_tokens":"odd"', '"max_tokens":"odd"'),
    ],
)
@pytest.mark.parametrize("default", [64, "auto"])
def test_default_fills_a_missing_output_limit(
    provider: str, host: str, sent: str, expected: str, default: object
) -> None:
    """Under the name that the provider takes, unless the client gave one under either name."""
    site = msgspec.structs.replace(SITE, dialect=dialect_of(provider, host), output_limit_tokens=64)
    plugin = RequestParamsPlugin(RequestParams(default_max_tokens=default), site)  # type: ignore[arg-type]  # mypy widens the parameters

    after = edited(plugin, f'{{"model":"m"{sent and ","}{sent}}}'.encode())

    assert after == f'{{"model":"m",{expected}}}'.encode()


def test_automatic_default_needs_a_known_limit() -> None:
    """Where the model's limit is not known there is nothing to fill in."""
    plugin = RequestParamsPlugin(RequestParams(default_max_tokens="auto"), SITE)

    assert edited(plugin, b'{"model":"m"}') == b'{"model":"m"}'


def test_default_stands_in_for_a_blocked_limit_and_is_capped() -> None:
    """Block, fill, cap, in this order."""
    config = RequestParams(blocked=("max_tokens",), default_max_tokens=900, max_tokens_limit=500)

    after = edited(RequestParamsPlugin(config, SITE), b'{"max_tokens":7,"model":"m"}')

    assert json.loads(after) == {"model": "m", "max_tokens": 500}


def test_blocked_members_go() -> None:
    """What is not there needs no removal."""
    plugin = RequestParamsPlugin(RequestParams(blocked=("logprobs", "top_p", "x")), SITE)

    after = edited(plugin, b'{"logprobs":true,"model":"m","x":{"model":1}, "n":1}')

    assert after == b'{"model":"m", "n":1}'


@pytest.mark.parametrize("name", ["model", "messages"])
def test_indispensable_member_cannot_be_blocked(name: str) -> None:
    """The document is refused, since every request would be."""
    with pytest.raises(ConfigRejected, match=rf"request_params\.blocked_params\[1\].*'{name}'"):
        RequestParamsPlugin(RequestParams(blocked=("n", name)), SITE)


def test_unknown_members_are_stripped() -> None:
    """What OpenAI's API knows stays, so what streaming and reasoning clients send does."""
    plugin = RequestParamsPlugin(RequestParams(strip_unknown=True), SITE)
    known = dict.fromkeys(sorted(KNOWN_MEMBERS), 1)
    body = json.dumps({"chat_template_kwargs": {}, **known, "thinking": {}, "foo": 1}).encode()

    after = edited(plugin, body)

    assert list(json.loads(after)) == list(known)
    assert {"stream_options", "max_completion_tokens", "parallel_tool_calls"} <= KNOWN_MEMBERS


def test_plugin_judges_before_the_router_adds() -> None:
    """Members of the Router's own are not the client's."""
    assert RequestParamsPlugin.stage is Stage.PARAMS
    assert Stage.PARAMS < Stage.ROUTER
    assert RequestParamsPlugin.capability is Capability.REQUEST_SAFE


@given(
    data=st.data(),
    members=st.dictionaries(
        st.sampled_from(["model", "messages", "n", "max_tokens", "stop", "foo", "thinking"]),
        JSON_VALUES | st.integers() | st.floats(allow_nan=False, allow_infinity=False),
    ),
)
def test_params_keep_the_bytes_of_what_they_allow(
    data: st.DataObject, members: dict[str, object]
) -> None:
    """No value is rewritten but the capped ones, and judging twice changes nothing more."""
    body = data.draw(json_texts(members)).encode()
    plugin = RequestParamsPlugin(
        RequestParams(blocked=("stop",), max_tokens_limit=9, max_n=2, strip_unknown=True), SITE
    )

    after = edited(plugin, body)

    before, envelope = open_envelope(body), open_envelope(after)
    assert set(envelope.members) <= {"model", "messages", "n", "max_tokens"}
    for name in envelope.members:
        assert envelope.raw(name) in (before.raw(name), b"9" if name == "max_tokens" else b"2")
    assert members.keys() & {"model", "messages"} <= envelope.members.keys()
    assert edited(plugin, after) == after


def test_params_come_out_as_in_the_reference() -> None:
    """The phase fixture of block, caps and strip."""
    file = reference_dir() / "phase-fixtures" / "30-request-params.yaml"
    cases = yaml.safe_load(file.read_text())["cases"]
    for case in cases:
        given_input = case["input"]
        configuration = given_input["configuration"]
        profile = given_input["profile"] or {"type": "vllm", "base_url": "http://10.0.0.1"}
        config = RequestParams(
            blocked=tuple(configuration.get("blocked_params", ())),
            max_tokens_limit=configuration.get("max_tokens_limit"),
            max_n=configuration.get("max_n"),
            strip_unknown=configuration.get("strip_unknown", False),
        )
        dialect = dialect_of(profile["type"], profile["base_url"].split("/")[2])
        plugin = RequestParamsPlugin(config, msgspec.structs.replace(SITE, dialect=dialect))

        after = edited(plugin, json.dumps(given_input["body"]).encode())

        assert matches({"output": json.loads(after)}, case["expect"]), (case["name"], after)
    assert cases
