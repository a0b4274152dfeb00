"""The text of an output contract."""

from vsr.codec.output_contract import contract_paragraph, find_contract, joined_contract


def test_find_contract_takes_what_follows_the_last_marker() -> None:
    """A quoted earlier prompt has a marker of its own, so the last one counts."""
    marker = "Required output contract:"

    assert find_contract(f"{marker} a {marker}\n b\n") == "b"
    assert find_contract("required output contract: a") == ""


def test_joined_contract_trims_and_drops_repetitions() -> None:
    """The request's contracts come first, the decision's last, each of them once."""
    assert joined_contract((" a ", "b", "a", " "), "b\n") == "a\n\nb"
    assert joined_contract(("a",), "own") == "a\n\nown"
    assert joined_contract(()) == ""


def test_joined_contract_is_cut_to_2000_characters() -> None:
    """A contract is no way to blow up every prompt; characters count, not bytes."""
    assert joined_contract(("é" * 1999,), "own") == "é" * 1999 + "\n"


def test_contract_paragraph_frames_the_contract() -> None:
    """The marker makes it a contract for the next graph, too; no contract, no marker."""
    assert contract_paragraph("a") == "\nRequired output contract:\na\n"
    assert contract_paragraph("") == ""
