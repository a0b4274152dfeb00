"""Transformer `contract_text`: what the answer has to look like, in one text."""

import attrs

from vsr.codec.output_contract import joined_contract
from vsr.graph.transform.transformer import Transformer
from vsr.graph.value import Inputs
from vsr.registry import Extension


@attrs.frozen
class ContractText:
    """Joins the contracts of the request and the decision's own.

    Source: looper-algorithms 13.1.
    """

    found: tuple[str, ...] = ()
    own: str | None = None

    def __call__(self, _inputs: Inputs, /) -> str:
        """Return the contract, empty if there is none."""
        return joined_contract(self.found, self.own or "")


CONTRACT_TEXT = Extension[Transformer](name="contract_text", config=ContractText)
