"""Transformer `contract_specs`: what steps take of a decision's typed output contract."""

import attrs
import msgspec

from vsr.graph.transform.choice_contract import ChoiceSpec
from vsr.graph.transform.json_action_contract import JsonActionSpec
from vsr.graph.transform.transformer import Transformer
from vsr.graph.value import Inputs
from vsr.registry import Extension


class ContractSpecs(msgspec.Struct, frozen=True):
    """At most one of them is there."""

    choice: ChoiceSpec | None = None
    action: JsonActionSpec | None = None

    @property
    def wants_choice(self) -> bool:
        """Return whether the answer has to be one of a few values."""
        return self.choice is not None


@attrs.frozen
class ReadContract:
    """Puts together what there is; the parameters of a graph hold both as data."""

    choice: ChoiceSpec | None = None
    action: JsonActionSpec | None = None

    def __call__(self, _inputs: Inputs, /) -> ContractSpecs:
        """Return what there is of it."""
        return ContractSpecs(self.choice, self.action)


CONTRACT_SPECS = Extension[Transformer](name="contract_specs", config=ReadContract)
