"""What a migration can't decide: refused with file, line and a way to mend."""

from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from ruamel.yaml.comments import CommentedMap

from vsr.config.migrate.round_trip import Indents, RoundTripFailed
from vsr.config.migrate.text import migrate_text
from vsr.errors import ConfigRejected

NEW = """\
version: v0.3
defaults: {note: one}
providers: {defaults: {model: a}}
routing: {signals: {}}
"""
"""What the document of the tests of faulty writing becomes."""


def refusal(text: str) -> str:
    """Return what an author reads about the document."""
    with pytest.raises(ConfigRejected) as caught:
        migrate_text(text, "old.yaml")
    return str(caught.value)


CASES = {
    "default_model: canary\nproviders:\n  defaults:\n    model: b\n": (
        "old.yaml:1: default_model: is given as providers.defaults.model too, with another value, "
        "keep one of the two"
    ),
    "routing:\n  modelCards: [{name: canary}]\n  models:\n    - name: b\n": (
        "old.yaml:3: routing.models: is given as routing.modelCards too, with another value, "
        "keep one of the two"
    ),
    "global:\n  strategy: canary\n  router:\n    strategy: b\n": (
        "old.yaml:2: global.strategy: is given as global.router.strategy too, with another value, "
        "keep one of the two"
    ),
    "global:\n  stores:\n    semantic_cache: {a: canary}\n    response_cache: {a: 2}\n": (
        "old.yaml:3: global.stores.semantic_cache: is given as global.stores.response_cache too, "
        "with another value, keep one of the two"
    ),
    "evaluation: {records: [canary]}\nevaluation_catalog: {records: [b]}\n": (
        "old.yaml:2: evaluation_catalog: stands beside evaluation, put both into evaluation"
    ),
    "routing:\n  decisions:\n    - plugins:\n        - type: response_cache\n"
    "        - type: semantic-cache\n": (
        "old.yaml:5: routing.decisions[0].plugins[1].type: is a second plugin response_cache of "
        "this decision, keep one of them"
    ),
    "providers:\n  models:\n    - name: a\n      access_key: canary\n": (
        "old.yaml:4: providers.models[0].access_key: has no backend that it could belong to, "
        "give the model backend_refs, or remove the key"
    ),
    "providers:\n  models:\n    - name: a\n      endpoints: canary\n": (
        "old.yaml:4: providers.models[0].endpoints: must be a list, write it as a list of backends"
    ),
    "providers:\n  model_targets:\n    a:\n      backend_refs: [x]\n      auth_ref: k\n": (
        "old.yaml:4: providers.model_targets.a.backend_refs: names a backend that is not declared "
        "under providers.backends, declare it there, or remove the reference\n"
        "old.yaml:5: providers.model_targets.a.auth_ref: is not declared under "
        "providers.auth_profiles, declare it there, or remove the reference"
    ),
    "providers:\n  models: [{name: a}]\n  model_targets:\n    a: {provider_model_id: canary}\n": (
        "old.yaml:4: providers.model_targets.a: is the name of one of providers.models too, "
        "keep one of the two"
    ),
    "model_config:\n  a:\n    preferred_endpoints: [x]\n": (
        "old.yaml:3: model_config.a.preferred_endpoints: names an endpoint that is not declared "
        "under vllm_endpoints, declare it there, or remove the name"
    ),
    "vllm_endpoints:\n  - name: e\n    provider_profile: p\n"
    "model_config: {a: {preferred_endpoints: [e]}}\n": (
        "old.yaml:3: vllm_endpoints[0].provider_profile: is not declared under provider_profiles, "
        "declare it there, or remove the reference"
    ),
    "routing:\n  modelCards:\n    - name: a\n      quality_score: canary\n": (
        "old.yaml:4: routing.modelCards[0].quality_score: must be a number, write it as 0.9, "
        "for example"
    ),
    "providers: {models: [{name: a, catalog: c}, {name: b, catalog: c}]}\nrouting:\n"
    "  modelCards:\n    - {name: a, tags: [x]}\n    - name: b\n      tags: [canary]\n": (
        "old.yaml:6: routing.modelCards[1].tags: differs from that of another card, and both are "
        "now of 'c', correct one of them, as routing.modelCards[0]"
    ),
    "prompt_guard:\n  protocol: http_chat\n": (
        "old.yaml:2: global.model_catalog.modules.prompt_guard.protocol: needs one external model "
        "with the role guardrail, there are 0, name the model in backend instead of protocol"
    ),
    "prompt_guard:\n  protocol: canary\nexternal_models: [{model_role: guardrail}]\n": (
        "old.yaml:2: global.model_catalog.modules.prompt_guard.protocol: is not a protocol of "
        "old, write http_chat or http_classify"
    ),
    "prompt_guard:\n  protocol: http_chat\n  backend: {a: canary}\n"
    "external_models: [{model_role: guardrail}]\n": (
        "old.yaml:2: global.model_catalog.modules.prompt_guard.protocol: stands beside backend or "
        "variant, keep one of the two"
    ),
    "prompt_guard:\n  protocol: http_chat\n"
    "external_models: [{model_role: guardrail, name: x}, {name: x}]\n": (
        "old.yaml:2: global.model_catalog.modules.prompt_guard.protocol: finds two external "
        "models named 'x', give each external model a name of its own"
    ),
    "providers: canary\ndefault_model: a\n": (
        "old.yaml:1: providers: must be a mapping, write it as a mapping"
    ),
    "routing: {modelCards: canary}\nproviders: {models: [{name: a, tags: [b]}]}\n": (
        "old.yaml:1: routing.modelCards: must be a list, write it as a list"
    ),
    "version: v0.9\n": (
        "old.yaml:1: version: is not one that can be migrated, write v0.3 if the document is "
        "older than that"
    ),
    "a:\n  <<: {b: canary}\n  <<: {b: 2}\n": (
        "old.yaml:3: (document): has two keys << in one mapping, list both in one"
    ),
    "a: 1\nk: >1#[\n": (
        "old.yaml:1: (document): can't be rewritten, its YAML is unusual, use plainer YAML there"
    ),
    "a: 1\nb: 'canary\u2028'\n": (
        "old.yaml:2: (document): has a line break other than a newline, write it as an escape in "
        "double quotes"
    ),
    "- a\n": "old.yaml:1: (document): must be a mapping",
    "a: 1\nb: [\n": (
        "old.yaml:3: (document): is not valid YAML, while parsing a flow node did not find "
        "expected node content"
    ),
    "a: 1\na: canary\n": "old.yaml:2: a: is given twice, first on line 1, keep one of the two",
}


@pytest.mark.parametrize(("text", "message"), CASES.items(), ids=range(len(CASES)))
def test_refusal_says_where_what_and_how_to_mend(text: str, message: str) -> None:
    """The line is that of the old document, and no value of it is shown."""
    assert refusal(text) == message


def test_every_problem_is_reported_at_once() -> None:
    """An author mends a document in one round."""
    text = "default_model: a\nstrategy: s\nproviders: {defaults: {model: b}}\n"

    problems = refusal(text + "global: {router: {strategy: t}}\n").splitlines()

    assert [problem.split(":")[1] for problem in problems] == ["1", "2"]


def _fail(_root: CommentedMap, _indents: Indents) -> str:
    raise RoundTripFailed


@pytest.mark.parametrize(
    ("dump", "place"),
    [
        (lambda _root, _indents: "{", "1: (document)"),
        (lambda _root, _indents: "a: 1\n", "1: (document)"),
        (lambda _root, _indents: NEW.replace("one", "other"), "2: defaults.note"),
        (_fail, "1: (document)"),
    ],
)
def test_result_that_would_say_something_else_is_refused(
    dump: Callable[[CommentedMap, Indents], str], place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault of the library that writes YAML does no damage."""
    monkeypatch.setattr("vsr.config.migrate.text.dump", dump)
    why = "can't be rewritten, its YAML is unusual, use plainer YAML there"

    assert refusal("default_model: a\ndefaults: {note: one}\n") == f"old.yaml:{place}: {why}"


_WORDS = """
    providers models defaults default_model reasoning_families routing modelCards name signals
    decisions plugins global runtime router strategy semantic_cache prompt_guard protocol
    model_config vllm_endpoints preferred_endpoints backend_refs type endpoints access_key
    quality_score <<
"""
_KEYS = st.sampled_from(_WORDS.split())
_VALUES = st.recursive(
    st.sampled_from(["a", "1", "", "[]", "{}", "null", "'x'", "&k v", "*k", "# c"]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]"),
        st.dictionaries(_KEYS, inner, max_size=3).map(
            lambda items: "{" + ", ".join(f"{key}: {value}" for key, value in items.items()) + "}"
        ),
    ),
    max_leaves=8,
)
_DOCUMENTS = st.dictionaries(_KEYS, _VALUES, min_size=1, max_size=5).map(
    lambda items: "".join(f"{key}: {value}\n" for key, value in items.items())
)


@given(st.one_of(st.text(max_size=60), _DOCUMENTS))
@example("a: \x85b\n")
@example("%YAML 1.1\n---\ndefault_model: a\n...\n")
@example("? [a]\n: 1\n")
def test_any_text_is_migrated_or_refused(text: str) -> None:
    """Nothing but a refusal comes out of a text that can't be migrated, and twice is once."""
    try:
        result = migrate_text(text, "old.yaml")
    except ConfigRejected:
        return

    assert migrate_text(result.text).changes == ()
