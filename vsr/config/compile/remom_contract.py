"""What an output contract means for the graph of `remom`."""

from vsr.config.compile.contracts import contract_of, sources_of
from vsr.config.document.output_contracts import OutputContractSpec

_DEREFERENCE = "dereference_selected_reference"


def remom_contract(spec: OutputContractSpec | None) -> dict[str, object]:
    """Return the parameters that tell of the contract; a contract of another kind has no effect.

    Source: looper-algorithms 13.3 and 13.4.
    """
    contract = contract_of(spec)
    action = None if contract is None else contract["json_action"]
    id_format, sources = None, ["content"]
    if spec is not None and contract is not None and _dereferences(spec):
        id_format, sources = contract["id_format"], sources_of(spec)
    return {
        "is_json_action": action is not None,
        "json_action": action,
        "reference_id_format": id_format,
        "reference_sources": sources,
    }


def _dereferences(spec: OutputContractSpec) -> bool:
    return spec.type == "reference_selection" and any(
        each.type == _DEREFERENCE for each in spec.postprocess
    )
