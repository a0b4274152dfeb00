"""The reference's parity corpus: every case, both ways, in any split.

A row of a failing test is one difference; `python -m tests.conformance parity DIR --all` lists
those of all cases.
"""

import json

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conformance.drivers import by_phases, in_process
from tests.conformance.loading import Folder
from tests.fakes.phase_driver import Split
from tests.reference_dir import reference_dir

CASES = [
    "auto-code-route",
    "auto-urgent-route",
    "auto-essay-anthropic-backend",
    "auto-no-match-default-model",
    "explicit-remote-model",
    "unknown-model",
    "unpublished-flow-model",
    "entrypoint-support-recipe",
    "streaming-code-route",
    "models-list",
    "invalid-json-body",
    "missing-model-field",
    "upstream-503",
    "upstream-429",
    "skip-processing-header-ignored",
    "client-selected-model-overwritten",
    "client-envoy-control-headers",
    "anthropic-messages-ingress",
    "responses-api-not-enabled",
]
TRANSLATED = {"auto-essay-anthropic-backend", "anthropic-messages-ingress"}
"""Cases whose backend speaks another protocol than the client."""
_places = st.lists(st.integers(0, 700), max_size=6)


@pytest.fixture
def folder() -> Folder:
    """The corpus."""
    return Folder.read(reference_dir() / "parity-corpus")


def test_corpus_has_exactly_these_cases(folder: Folder) -> None:
    """A case that is added to it must not stay untested."""
    assert list(folder.corpus.cases) == CASES


@pytest.mark.parametrize("name", CASES)
async def test_case_equals_its_record_in_process(name: str, folder: Folder) -> None:
    """Effects, upstream message, client response, route and evidence."""
    record = await in_process(folder.engine(), folder.corpus.cases[name])

    assert [*map(str, folder.judge(name).differences(record))] == []


@pytest.mark.parametrize("name", CASES)
async def test_case_equals_its_record_by_phases(name: str, folder: Folder) -> None:
    """Chunk by chunk, as the backend of the record delivers."""
    record = await by_phases(folder.engine(), folder.corpus.cases[name])

    assert [*map(str, folder.judge(name).differences(record))] == []


@pytest.mark.parametrize("name", CASES)
def test_case_equals_its_record_in_any_split(name: str) -> None:
    """Of either body, wherever a proxy cuts it."""
    folder = Folder.read(reference_dir() / "parity-corpus")
    engine, case, judge = folder.engine(), folder.corpus.cases[name], folder.judge(name)
    whole = trio.run(by_phases, engine, case)
    # Without this, a case that differs anyhow is searched for the split that is to blame.
    assert [*map(str, judge.differences(whole, is_cut_anew=True))] == []

    @given(_places, _places)
    @settings(max_examples=25, deadline=None)
    def run(request: list[int], response: list[int]) -> None:
        record = trio.run(by_phases, engine, case, Split(request, response))
        assert [*map(str, judge.differences(record, is_cut_anew=True))] == []

    run()


@pytest.mark.parametrize("name", [name for name in CASES if name not in TRANSLATED])
async def test_upstream_body_keeps_the_clients_order(name: str, folder: Folder) -> None:
    """The reference sorts what it rewrites; ours leaves every member where the client had it."""
    case = folder.corpus.cases[name]

    record = await in_process(folder.engine(), case)

    assert (record.upstream is not None) == (folder.corpus.expected[name].upstream is not None)
    if record.upstream is not None:
        sent, came = list(json.loads(record.upstream.body)), list(json.loads(case.body))
        assert [member for member in sent if member in came] == came
