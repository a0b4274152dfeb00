"""What an output contract means for the graph of `remom`."""

from vsr.config.document.output_contracts import OutputContractSpec

_JSON_ACTION = "terminal_action_v1"
_DEREFERENCE = "dereference_selected_reference"


def remom_contract(spec: OutputContractSpec | None) -> dict[str, object]:
    """Return the parameters that tell of the contract; a contract of another kind has no effect.

    Source: looper-algorithms 13.3 and 13.4.
    """
    action = _json_action(spec)
    id_format, sources = _reference(spec)
    return {
        "is_json_action": action is not None,
        "json_action": action,
        "reference_id_format": id_format,
        "reference_sources": sources,
    }


def _json_action(spec: OutputContractSpec | None) -> dict[str, object] | None:
    """Return where an action is looked for; None if none is wanted."""
    if spec is None or spec.type != "structured_json":
        return None
    if spec.json_schema is None or spec.json_schema.schema_ref != _JSON_ACTION:
        return None
    mode = None if spec.extract is None else spec.extract.mode
    return {"mode": mode or "exact", "sources": _sources(spec)}


def _reference(spec: OutputContractSpec | None) -> tuple[str | None, list[str]]:
    """Return how a candidate is named, None if none may be, and where."""
    if spec is None or spec.type != "reference_selection":
        return None, ["content"]
    if _DEREFERENCE not in {each.type for each in spec.postprocess}:
        return None, ["content"]
    named = None if spec.reference is None else spec.reference.id_format
    return named or "index", _sources(spec)


def _sources(spec: OutputContractSpec) -> list[str]:
    sources = () if spec.extract is None else spec.extract.sources
    return list(sources or ("content",))
