"""Output contracts as plain values for graphs."""

from vsr.config.document.output_contracts import OutputContractSpec

_JSON_ACTION = "terminal_action_v1"
"""The one schema that is an action. Source: looper-algorithms 13.3."""


def contract_of(spec: OutputContractSpec | None) -> dict[str, object] | None:
    """Return a contract with its defaults filled in; None where there is none.

    `choice` and `json_action` are what the transformers of these names take, None where the
    contract is of another kind.

    Source of the defaults: the reference. Keys that it accepts and does not use are left out.
    """
    if spec is None:
        return None
    render, extract, reference = spec.render, spec.extract, spec.reference
    mode = (None if extract is None else extract.mode) or "exact"
    sources = sources_of(spec)
    choices = [] if spec.choice_set is None else list(spec.choice_set.values)
    schema = None if spec.json_schema is None else spec.json_schema.schema_ref
    shown_as = (None if render is None else render.mode) or "value"
    template = None if render is None else render.template
    is_action = spec.type == "structured_json" and schema == _JSON_ACTION
    return {
        "type": spec.type,
        "choices": choices,
        "schema_ref": schema,
        "id_format": (None if reference is None else reference.id_format) or "index",
        "render": {"mode": shown_as, "template": template},
        "extract": {"mode": mode, "sources": sources},
        "postprocess": [each.type for each in spec.postprocess if each.type is not None],
        "choice": {
            "values": choices,
            "sources": sources,
            "template": template if shown_as == "template" else None,
        }
        if spec.type == "choice"
        else None,
        "json_action": {"mode": mode, "sources": sources} if is_action else None,
    }


def sources_of(spec: OutputContractSpec) -> list[str]:
    """Return where in an answer the contract looks, first to last."""
    return list((() if spec.extract is None else spec.extract.sources) or ("content",))
