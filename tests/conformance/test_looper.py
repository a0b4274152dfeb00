"""Looper fixtures: the reference's, and our own that show that the runner sees what differs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest
import yaml

from tests.conformance.looper import LooperResult, run_case, run_file
from tests.conformance.looper_case import read_case
from tests.conformance.looper_document import document_of
from tests.reference_dir import reference_dir
from vsr.config.report import Report
from vsr.config.source import read_bytes

CASES = [
    "confidence-01-first-accepted",
    "confidence-02-hybrid-escalates",
    "confidence-03-margin-missing-alternatives",
    "confidence-04-threshold-never-met",
    "confidence-05-upstream-error-skip",
    "confidence-06-upstream-error-fail",
    "confidence-07-no-evidence-anywhere",
    "confidence-08-self-verify",
    "confidence-09-self-verify-stream",
    "confidence-10-logprob-stream-simulated",
    "confidence-11-cost-order",
    "confidence-12-automix",
    "confidence-13-tool-call-filter",
    "confidence-14-tagged-tool-call",
    "fusion-01-normal",
    "fusion-02-malformed-analysis",
    "fusion-03-analysis-call-fails",
    "fusion-04-quorum-with-failure",
    "fusion-05-all-fail",
    "fusion-06-tools",
    "fusion-07-request-override",
    "fusion-08-grounding-filter",
    "fusion-09-stream",
    "fusion-10-panel-fail",
    "fusion-11-below-quorum",
    "ratings-01-skip-failed",
    "ratings-02-fail",
    "ratings-03-stream",
    "remom-01-round-robin",
    "remom-02-weighted-shuffled",
    "remom-03-quorum",
    "remom-04-reasoning-only-final",
    "remom-05-fail",
    "remom-06-stream-options",
    "remom-07-reference-selection",
    "remom-08-final-round-error",
    "remom-09-round-timeout",
    "workflows-01-static",
    "workflows-02-dynamic",
    "workflows-03-fallback-plan",
    "workflows-04-invalid-plan-fails",
    "workflows-05-step-partial",
    "workflows-06-tool-resume",
    "workflows-07-final-fails-choice",
    "workflows-08-stream",
    "workflows-09-json-action",
    "workflows-10-step-timeout-fail",
    "workflows-11-choice-render-override",
]
WARNED = {
    "fusion-07-request-override": [
        "names no model of the panel: it counts only for requests that bring their own"
    ]
}
OWN = Path(__file__).parents[2] / "fixtures" / "looper"
WHOLE, STREAM, TOOLS, SHARED = (
    "static-01-whole",
    "static-02-stream",
    "static-03-tool-turns",
    "static-04-at-the-backend",
)
Fields = dict[str, Any]


@pytest.fixture
def folder() -> Path:
    """The reference's fixtures."""
    return reference_dir() / "looper-fixtures"


def test_folder_has_exactly_these_cases(folder: Path) -> None:
    """A case that is added to it must not stay untested."""
    assert sorted(path.stem for path in folder.glob("*.yaml")) == CASES


@pytest.mark.parametrize("name", CASES)
def test_document_of_the_case_is_valid(name: str, folder: Path) -> None:
    """Without a warning that is not known."""
    document = document_of(read_case(folder / f"{name}.yaml"), 9001, 9002)

    warnings = read_bytes(document, {}, Report(name)).warnings
    assert [warning.what for warning in warnings] == WARNED.get(name, [])


@pytest.mark.parametrize("name", CASES)
def test_case_of_the_reference_passes(name: str, folder: Path) -> None:
    """Calls, their order and the answer."""
    result = run_file(folder / f"{name}.yaml")

    assert (result.differences, result.is_unserved) == ((), False)


@pytest.mark.parametrize("name", sorted(path.stem for path in OWN.glob("*.yaml")))
def test_own_case_passes(name: str) -> None:
    """What the runner expects beside the reference's fixtures, and what those leave open."""
    assert run_file(OWN / f"{name}.yaml") == LooperResult(name)


def expectation(fixture: Fields, turn: int = 0) -> Fields:
    """Return what a turn expects."""
    expect: Fields = fixture["turns"][turn]["expect"]
    return expect


def mutated(name: str, change: Callable[[Fields], object], folder: Path) -> LooperResult:
    """Return what one of our cases comes to with a change."""
    fixture = yaml.safe_load((OWN / f"{name}.yaml").read_text(encoding="utf-8"))
    change(fixture)
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(fixture), encoding="utf-8")
    return run_file(path)


@pytest.mark.parametrize(
    ("name", "change", "lines"),
    [
        (
            WHOLE,
            lambda it: expectation(it)["calls"][0].update(model="other"),
            ['calls[0].model: expected "other", got "only"'],
        ),
        (
            WHOLE,
            lambda it: expectation(it)["calls"][0]["body"].update(temperature=1),
            ["calls[0].body.temperature: expected 1, got 0.25"],
        ),
        (
            WHOLE,
            lambda it: it["config"]["models"]["only"].update(access_key="k2"),
            ['calls[0].authorization: expected "Bearer key-only", got "Bearer k2"'],
        ),
        (
            WHOLE,
            lambda it: expectation(it)["calls"].append({"model": "only"}),
            [
                'calls: expected 2 ["only", "only"], got 1 ["only"]',
                'calls[1]: expected a call of "only", got none',
            ],
        ),
        (
            WHOLE,
            lambda it: expectation(it).update(peak_concurrency=2),
            ["peak_concurrency: expected 2, got 1"],
        ),
        (
            WHOLE,
            lambda it: expectation(it).update(verifier_calls=[{"body": {"answer": "x"}}]),
            ["verifier_calls: expected 1, got 0"],
        ),
        (
            WHOLE,
            lambda it: expectation(it)["response"]["headers"].update({"x-vsr-a": "b"}),
            ['response.headers.x-vsr-a: expected "b", got nothing'],
        ),
        (
            WHOLE,
            lambda it: expectation(it)["response"].update(keys=["id"]),
            [
                (
                    'response.keys: expected {"$set": ["id"]}, got '
                    '["id", "object", "created", "model", "choices", "usage"]'
                )
            ],
        ),
        (
            STREAM,
            lambda it: expectation(it)["response"]["events"][1]["choices"][0].update(index=1),
            ["response.events[1].choices[0].index: expected 1, got 0"],
        ),
        (
            TOOLS,
            lambda it: expectation(it, 1)["calls"][0].update(message_count=5),
            ["turn 2: calls[0].message_count: expected 5, got 4"],
        ),
        (
            TOOLS,
            lambda it: it["turns"].reverse(),
            ["turn 1: request: names a tool call that no earlier turn returned"],
        ),
        (
            SHARED,
            lambda it: expectation(it)["calls"][0].update(absent_headers=["X-Team"]),
            ['calls[0].headers.X-Team: expected nothing, got "blue"'],
        ),
        (
            SHARED,
            lambda it: expectation(it)["calls"][0].update(route="model-b"),
            ['calls[0].route: expected "model-b", got "model-a"'],
        ),
    ],
)
def test_case_that_expects_otherwise_differs(
    name: str, change: Callable[[Fields], object], lines: list[str], tmp_path: Path
) -> None:
    """The first lines say where, what was expected and what came."""
    result = mutated(name, change, tmp_path)

    assert list(result.differences)[: len(lines)] == lines
    assert not result.has_passed


def test_headers_of_the_answer_may_be_complete(tmp_path: Path) -> None:
    """Then one that is not named differs."""
    result = mutated(
        WHOLE, lambda it: expectation(it)["response"].update(headers_complete=True), tmp_path
    )

    names = {line.partition(": ")[0] for line in result.differences}
    assert "response.headers.content-type" in names
    assert "response.headers.x-vsr-selected-model" not in names


def test_call_without_a_scripted_reply_differs(tmp_path: Path) -> None:
    """Whatever the Router makes of it."""
    result = mutated(WHOLE, lambda it: it["turns"][0]["backend"].update(only=[]), tmp_path)

    assert "backend: call 1 of 'only' has no scripted reply" in result.differences


def test_turns_end_with_the_first_that_differs(tmp_path: Path) -> None:
    """What follows would only repeat it."""
    result = mutated(TOOLS, lambda it: expectation(it)["calls"][0]["body"].update(n=2), tmp_path)

    assert result.differences == ("turn 1: calls[0].body.n: expected 2, got nothing",)


def test_faulty_document_is_told_from_one_that_is_not_served(tmp_path: Path) -> None:
    """Only the latter is excused."""

    def type_of(name: str) -> Callable[[Fields], object]:
        return lambda it: it["config"]["decision"].update(algorithm={"type": name})

    faulty = mutated(WHOLE, type_of("nonsense"), tmp_path)
    unserved = mutated(WHOLE, type_of("svm"), tmp_path)

    assert [faulty.is_unserved, unserved.is_unserved] == [False, True]
    assert faulty.differences[0].startswith("refused: document:")
    assert unserved.differences[0].startswith("not served: document:")
    assert not faulty.has_passed
    assert not unserved.has_passed


def test_evidence_is_noted_as_not_checked(tmp_path: Path) -> None:
    """It passes, and says so."""
    result = mutated(WHOLE, lambda it: expectation(it).update(evidence={"iterations": 1}), tmp_path)

    assert result.has_passed
    assert result.notes == ("evidence is not checked: nothing shows that of a failed run",)


def test_answer_that_never_comes_is_not_waited_for(tmp_path: Path) -> None:
    """Not longer than the virtual time of a turn; the call is left with it."""
    result = mutated(
        WHOLE,
        lambda it: it["turns"][0]["backend"]["only"][0].update(delay_ms=7_300_000),
        tmp_path,
    )

    assert result.differences == ("response: expected within 7200 virtual s, got none",)


def test_fixture_that_is_none_differs(tmp_path: Path) -> None:
    """As a case of the name of its file."""
    (tmp_path / "broken.yaml").write_text("id: other\n", encoding="utf-8")

    result = run_file(tmp_path / "broken.yaml")

    assert (result.name, result.has_passed) == ("broken", False)
    assert result.differences[0].startswith("fixture: can't be read: KeyError")


def test_error_of_a_case_is_a_difference(tmp_path: Path) -> None:
    """It ends neither the run of the others nor is it lost."""
    result = mutated(
        WHOLE, lambda it: it["turns"][0]["backend"]["only"][0].update(usage=[1]), tmp_path
    )

    [line] = result.differences
    assert line.startswith("run: expected to go through, got ValueError: zip()")
    assert "looper_reply.py" in line


class Endless(list[Fields]):
    """Replies that nobody ever has counted."""

    is_counting = True

    def __len__(self) -> int:
        """Return nothing, ever."""
        while self.is_counting:
            pass
        return 0


def test_case_that_hangs_is_ended() -> None:
    """Also where it never lets the virtual clock go on."""
    case = read_case(OWN / f"{WHOLE}.yaml")
    turns = [attrs.evolve(turn, backend={"only": Endless()}) for turn in case.turns]

    result = run_case(attrs.evolve(case, turns=turns), most_real_s=0.3)

    assert result.differences == ("run: expected to end within 0.3 s of real time, got no end",)
