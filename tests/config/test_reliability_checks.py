"""Bounds and warnings of reliability; the refusals stand word for word in the golden documents."""

import pytest

from vsr.config.report import Report
from vsr.config.source import read_bytes
from vsr.errors import ConfigRejected, Problem

MODEL = "providers.models[0].reliability"
DECISION = "routing.decisions[0].reliability"
PLACES = ("entrypoints[0]", "routing", "routing.decisions[0]", "recipes[0].routing")


def of_model(fields: str) -> str:
    """Return a document whose one model says `fields` of its reliability."""
    backend = "backend_refs: [{endpoint: '10.0.0.1:80'}]"
    return f"providers: {{models: [{{name: a, {backend}, reliability: {{{fields}}}}}]}}"


def of_decision(fields: str) -> str:
    """Return a document whose one decision says `fields` of its reliability."""
    return f"routing: {{decisions: [{{name: d, reliability: {{{fields}}}}}]}}"


def everywhere(model: str, layers: str) -> str:
    """Return a document that says `layers` at every place above the model."""
    return f"""
{of_model(model)}
entrypoints: [{{model_names: [e], recipe: r, reliability: {{{layers}}}}}]
routing:
  reliability: {{{layers}}}
  decisions: [{{name: d, reliability: {{{layers}}}}}]
recipes: [{{name: r, routing: {{reliability: {{{layers}}}}}}}]
"""


def problems_of(text: str, **environ: str) -> list[str]:
    """Return where a document has faults."""
    try:
        read_bytes(text.encode(), environ, Report("doc.yaml"))
    except ConfigRejected as error:
        return [problem.path for problem in error.problems]
    return []


def warnings_of(text: str, **environ: str) -> list[Problem]:
    """Return what a valid document is warned of."""
    return list(read_bytes(text.encode(), environ, Report("doc.yaml")).warnings)


def warned(text: str) -> list[str]:
    """Return where a valid document is warned."""
    return [problem.path for problem in warnings_of(text)]


# By key, values at its bounds and values beyond.
SHARED_BOUNDS = {
    "total_timeout": (("0s", "300h"), ("-1ns", "soon", "5")),
    "idle_timeout": (("0s", "300h"), ("-1ns", "soon", "5")),
    "retry_count": (("0", "5"), ("-1", "6", "1.5")),
    "retry_on": (("5xx",), ("''", "','")),
    "retriable_status_codes": (("[]", "[100, 599]"), ("[99]", "[600]", "503")),
    "retry_back_off_base": (("1ns", "300h"), ("0s", "-1s")),
    "retry_back_off_max": (("25ms",), ("0s", "-1s", "24ms")),
    "retry_after_max": (("1ns", "300h"), ("0s", "-1s")),
}
MODEL_BOUNDS = {
    **SHARED_BOUNDS,
    "lb_policy": (("round_robin", "least_request", "p2c_ewma"), ("ROUND_ROBIN", "random")),
    "connect_timeout": (("1ns",), ("0s", "-1s")),
    "per_try_timeout": (("1ns",), ("0s", "-1s")),
    "first_byte_timeout": (("1ns",), ("0s", "-1s")),
    "retry_budget_percent": (("0", "100", "0.5"), ("-0.1", "100.1")),
    "retry_budget_min_concurrency": (("0", "100000"), ("-1", "1.5")),
    "consecutive_5xx": (("0", "100000"), ("-1", "1.5")),
    "base_ejection_time": (("0s", "1ns", "300h"), ("-1s", "soon")),
    "max_ejection_percent": (("0", "100"), ("-1", "101")),
    "health_check_path": (("/", "/a?b=%20"), ("''", "health", "'/a b'", '"/\\u00e9"', '"/\\x7f"')),
    "health_check_interval": (("1ns",), ("0s", "-1s")),
    "health_check_timeout": (("1ns",), ("0s", "-1s")),
    "retry_evidence": (("any", "known_zero"), ("unknown",)),
    "replay_bytes": (("0", "4194304"), ("-1", "1.5")),
    "max_connections": (("1", "100000"), ("0", "1.5")),
    "max_pending": (("1", "100000"), ("0", "1.5")),
    "max_requests": (("1", "100000"), ("0", "1.5")),
    "max_retries": (("0", "100000"), ("-1", "1.5")),
}
DECISION_BOUNDS = {
    **SHARED_BOUNDS,
    "per_try_timeout": (("0s", "1ns"), ("-1s", "soon")),
    "first_byte_timeout": (("0s", "1ns"), ("-1s", "soon")),
}


def rows(bounds: dict[str, tuple[tuple[str, ...], tuple[str, ...]]], which: int) -> list[str]:
    """Return a field for each value at the bounds (0) or beyond them (1)."""
    return [f"{key}: {value}" for key, values in bounds.items() for value in values[which]]


def place_of(field: str, owner: str) -> str:
    """Return where a fault of the field is reported."""
    key, _, value = field.partition(": ")
    return f"{owner}.{key}{'[0]' if value.startswith('[') else ''}"


@pytest.mark.parametrize("field", rows(MODEL_BOUNDS, 0))
def test_model_takes_a_value_at_its_bounds(field: str) -> None:
    """Both bounds are inside."""
    assert problems_of(of_model(field)) == []


@pytest.mark.parametrize("field", rows(MODEL_BOUNDS, 1))
def test_model_refuses_a_value_beyond_its_bounds(field: str) -> None:
    """At its own place, and nothing else."""
    assert problems_of(of_model(field)) == [place_of(field, MODEL)]


@pytest.mark.parametrize("field", rows(DECISION_BOUNDS, 0))
def test_decision_takes_a_value_at_its_bounds(field: str) -> None:
    """All four timeouts may be 0."""
    assert problems_of(of_decision(field)) == []


@pytest.mark.parametrize("field", rows(DECISION_BOUNDS, 1))
def test_decision_refuses_a_value_beyond_its_bounds(field: str) -> None:
    """At its own place, and nothing else."""
    assert problems_of(of_decision(field)) == [place_of(field, DECISION)]


@pytest.mark.parametrize("field", sorted(set(MODEL_BOUNDS) - set(DECISION_BOUNDS)))
def test_layers_have_only_what_concerns_a_call(field: str) -> None:
    """What the cluster shares belongs to the model."""
    text = everywhere("", f"{field}: 1")

    assert problems_of(text) == [f"{place}.reliability.{field}" for place in PLACES]


def test_every_layer_is_checked() -> None:
    """Entrypoint, default recipe, decision, other recipe."""
    text = everywhere("", "retry_on: ' ', retry_back_off_base: 2s, retry_back_off_max: 1s")

    assert sorted(problems_of(text)) == sorted(
        f"{place}.reliability.{key}"
        for place in PLACES
        for key in ("retry_on", "retry_back_off_max")
    )


@pytest.mark.parametrize(
    ("fields", "is_refused"),
    [
        ("retry_back_off_base: 10ms, retry_back_off_max: 10ms", False),
        ("retry_back_off_base: 10ms, retry_back_off_max: 9ms", True),
        ("retry_back_off_base: 1h", False),
    ],
)
def test_longest_wait_is_no_shorter_than_the_first(fields: str, *, is_refused: bool) -> None:
    """An omitted base counts with its default, an omitted maximum follows the base."""
    assert problems_of(of_model(fields)) == [f"{MODEL}.retry_back_off_max"] * is_refused
    assert problems_of(of_decision(fields)) == [f"{DECISION}.retry_back_off_max"] * is_refused


@pytest.mark.parametrize("place", ["base", "max"])
def test_unreadable_wait_is_not_compared(place: str) -> None:
    """One fault is told once."""
    waits = {"base": "1s", "max": "1ms", place: "soon"}
    fields = ", ".join(f"retry_back_off_{key}: {wait}" for key, wait in waits.items())

    assert problems_of(of_model(fields)) == [f"{MODEL}.retry_back_off_{place}"]


def test_ejection_time_of_0_is_refused_only_where_it_is_used() -> None:
    """It is taken where nothing is ejected."""
    assert problems_of(of_model("base_ejection_time: 0s, consecutive_5xx: 1")) == [
        f"{MODEL}.base_ejection_time"
    ]


def test_unknown_condition_is_a_warning_with_the_nearest_one() -> None:
    """Envoy ignores it, so the document is valid."""
    found = warnings_of(of_decision("retry_on: '5xx, gateway-eror,reset'"))

    what = "'gateway-eror' has no effect: it is no retry condition"
    mend = "did you mean 'gateway-error'?"
    assert [str(each) for each in found] == [f"doc.yaml:1: {DECISION}.retry_on: {what}, {mend}"]


def test_warning_of_a_condition_hides_what_the_environment_gave() -> None:
    """It could be a secret that went astray."""
    found = warnings_of(of_decision("retry_on: '${CONDITIONS}'"), CONDITIONS="5xx,canary")

    assert [each.what for each in found] == [
        "a word of '${CONDITIONS}' has no effect: it is no retry condition"
    ]


CODES_KEY = "retriable_status_codes"
CODES = f"{CODES_KEY}: [404]"
LISTED = "retriable-status-codes"
TOKEN = f"retry_on: {LISTED}"


@pytest.mark.parametrize(
    ("model", "layers", "keys"),
    [
        (f"retry_count: 1, {CODES}", "", [CODES_KEY]),
        (f"retry_count: 1, {TOKEN}", "", ["retry_on"]),
        (f"retry_count: 1, {CODES}, {TOKEN}", "", []),
        (f"retry_count: 1, {CODES}", TOKEN, []),
        (f"retry_count: 1, {TOKEN}", CODES, []),
    ],
)
def test_codes_and_their_condition_belong_together(
    model: str, layers: str, keys: list[str]
) -> None:
    """Either alone has no effect; the other half may stand in another layer."""
    assert warned(everywhere(model, layers)) == [f"{MODEL}.{key}" for key in keys]


def test_pair_may_be_spread_over_layers() -> None:
    """The recipe's codes are for the decision that asks for them; others needn't say either."""
    text = f"""
routing:
  reliability: {{{CODES}}}
  decisions:
    - {{name: asks, reliability: {{{TOKEN}}}}}
    - {{name: other, reliability: {{retry_count: 1}}}}
"""

    assert warned(text) == []


@pytest.mark.parametrize(
    ("field", "words"),
    [
        (CODES, f"has no effect: retry_on does not name {LISTED}, add it there"),
        (TOKEN, f"{LISTED!r} has no effect: no status is listed, list some under {CODES_KEY}"),
    ],
)
def test_warning_of_half_a_pair_says_how_to_mend_it(field: str, words: str) -> None:
    """Which half is missing, and where it goes."""
    key = field.partition(":")[0]

    found = warnings_of(of_decision(field))

    assert [str(each) for each in found] == [f"doc.yaml:1: {DECISION}.{key}: {words}"]


@pytest.mark.parametrize(("field", "key"), [(CODES, CODES_KEY), (TOKEN, "retry_on")])
def test_layers_are_warned_of_half_of_the_pair(field: str, key: str) -> None:
    """Each of them."""
    text = everywhere("retry_count: 1", field)

    assert warned(text) == [f"{place}.reliability.{key}" for place in PLACES]


@pytest.mark.parametrize(
    "field",
    [
        "retry_on: 5xx",
        "retriable_status_codes: [404]",
        "retry_back_off_base: 1s",
        "retry_back_off_max: 1s",
        "retry_after_max: 1s",
    ],
)
def test_retry_settings_without_retries_are_warned_of(field: str) -> None:
    """A decision's retries over a model without any would not take them over either."""
    assert warned(of_model(field)) == [place_of(field, MODEL).removesuffix("[0]")]


@pytest.mark.parametrize("field", ["retry_count: 1", "per_try_timeout: 1s"])
def test_retry_settings_of_a_policy_are_not_warned_of(field: str) -> None:
    """A per-try timeout makes one, too."""
    assert warned(of_model(f"{field}, retry_on: 5xx, retry_after_max: 1s")) == []


@pytest.mark.parametrize("budget", ["retry_budget_percent: 0", "retry_budget_min_concurrency: 0"])
def test_limit_of_retries_beside_a_budget_is_warned_of(budget: str) -> None:
    """The budget takes its place; where it was not written nobody can be wrong about it."""
    assert warned(of_model(f"{budget}, max_retries: 3")) == [f"{MODEL}.max_retries"]
    assert warned(of_model(budget)) == warned(of_model("max_retries: 3")) == []


def test_ejection_percentage_of_0_is_warned_of() -> None:
    """It means the default and not that nothing is ejected."""
    assert warned(of_model("max_ejection_percent: 0")) == [f"{MODEL}.max_ejection_percent"]
    assert warned(of_model("max_ejection_percent: 1")) == []
