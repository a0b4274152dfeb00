"""Our own records of our own Router: `fixtures/parity`, replayed to the letter.

Rewritten by `python -m tests.conformance record fixtures/parity`.
"""

from pathlib import Path

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conformance.drivers import by_phases, compared
from tests.conformance.loading import EXPECTED, Folder
from tests.fakes.phase_driver import Split
from vsr.routing.parity.body_diff import BodyRule
from vsr.routing.parity.case import read_cases
from vsr.routing.parity.corpus import render_expected

GOLDEN = Path(__file__).parents[2] / "fixtures" / "parity"
NAMES = list(read_cases((GOLDEN / "cases.yaml").read_text(encoding="utf-8")))
_places = st.lists(st.integers(0, 600), max_size=5)


def golden() -> Folder:
    """Return the corpus, bodies compared as text."""
    return Folder.read(GOLDEN, BodyRule.AS_TEXT)


@pytest.mark.parametrize("name", NAMES)
async def test_golden_case_comes_to_what_was_recorded(name: str) -> None:
    """In process and by phases, every byte that is not volatile."""
    folder = golden()

    comparison = await compared(folder.engine(), folder.corpus.cases[name], folder.judge(name))

    assert [*map(str, comparison.in_process)] == []
    assert [*map(str, comparison.by_phases)] == []


@given(_places, _places)
@settings(max_examples=20, deadline=None)
def test_golden_case_comes_to_the_same_in_any_split(
    request: list[int], response: list[int]
) -> None:
    """Of either body."""
    folder = golden()

    async def run() -> None:
        engine = folder.engine()
        for name, case in folder.corpus.cases.items():
            record = await by_phases(engine, case, Split(request, response))
            found = folder.judge(name).differences(record, is_cut_anew=True)
            assert [*map(str, found)] == []

    trio.run(run)


def test_golden_file_is_as_its_command_writes_it() -> None:
    """Edited by hand, it would change with the next recording."""
    text = (GOLDEN / EXPECTED).read_text(encoding="utf-8")

    command = "python -m tests.conformance record fixtures/parity"
    assert text == render_expected(golden().corpus.expected, command)
