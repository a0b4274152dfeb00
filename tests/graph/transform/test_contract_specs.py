"""Transformer `contract_specs`."""

from tests.graph.transform.workflow_values import INPUTS
from vsr.graph.transform.choice_contract import ChoiceSpec
from vsr.graph.transform.contract_specs import ContractSpecs, ReadContract
from vsr.graph.transform.json_action_contract import JsonActionSpec


def test_contract_tells_whether_it_is_a_choice() -> None:
    """Planners are told so."""
    choice, action = ChoiceSpec(("A", "B")), JsonActionSpec()

    assert ReadContract()(INPUTS) == ContractSpecs()
    assert ReadContract(choice)(INPUTS) == ContractSpecs(choice)
    assert ReadContract(action=action)(INPUTS) == ContractSpecs(action=action)
    assert [ReadContract(each)(INPUTS).wants_choice for each in (None, choice)] == [False, True]
