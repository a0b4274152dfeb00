"""The text of an output contract: what a prompt says about the form of the answer."""

from collections.abc import Iterable

MARKER = "Required output contract:"
"""Stands before the contract in a message. Source: looper-algorithms 13.1."""

_MAX_CHARACTERS = 2000


def find_contract(text: str) -> str:
    """Return what follows the last marker in `text`, trimmed; empty if there is none."""
    return text.rpartition(MARKER)[2].strip() if MARKER in text else ""


def joined_contract(found: Iterable[str], own: str = "") -> str:
    """Return the contracts of a request and the decision's own behind them as one text.

    Blank ones and repetitions are left out; a blank line parts them; at most 2000 characters.

    Source: looper-algorithms 13.1.
    """
    trimmed = (contract.strip() for contract in (*found, own))
    return "\n\n".join(dict.fromkeys(text for text in trimmed if text))[:_MAX_CHARACTERS]


def contract_paragraph(contract: str) -> str:
    """Return what is appended to a prompt: nothing for no contract."""
    return f"\n{MARKER}\n{contract}\n" if contract else ""
