"""Transformer `contract_text`."""

from tests.graph.remom_replies import INPUTS
from vsr.graph.transform.contract_text import ContractText


def test_contracts_of_request_and_decision_are_joined() -> None:
    """The decision's own comes last; the same one is told once."""
    step = ContractText(found=("one word", " own "), own="own")

    assert step(INPUTS) == "one word\n\nown"


def test_no_contract_is_an_empty_text() -> None:
    """Prompts then say nothing of it."""
    assert not ContractText(own=None)(INPUTS)


def test_contract_is_cut() -> None:
    """Source: looper-algorithms 13.1."""
    assert len(ContractText(own="x" * 3000)(INPUTS)) == 2000
