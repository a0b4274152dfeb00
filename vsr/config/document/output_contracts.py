"""`routing.decisions[].output_contract_spec`: the form an answer must have."""

from collections.abc import Mapping
from typing import Literal

import attrs


@attrs.frozen(repr=False, unsafe_hash=False)
class OutputContractChoiceSetSpec:
    """`choice_set`."""

    values: tuple[str, ...] = ()


@attrs.frozen(repr=False, unsafe_hash=False)
class OutputContractJSONSchemaSpec:
    """`json_schema`."""

    schema_ref: str | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class OutputContractReferenceSpec:
    """`reference`."""

    source: Literal["candidate_responses"] | None = None
    id_format: Literal["index", "reference_number"] | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class OutputContractRenderSpec:
    """`render`."""

    mode: Literal["value", "template"] | None = None
    template: str | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class OutputContractExtractSpec:
    """`extract`."""

    mode: Literal["exact", "json_object"] | None = None
    sources: tuple[Literal["content", "reasoning_content", "candidate_responses"], ...] = ()


@attrs.frozen(repr=False, unsafe_hash=False)
class OutputContractNormalizeSpec:
    """`normalize`."""

    defaults: Mapping[str, str] = attrs.field(factory=dict)


@attrs.frozen(repr=False, unsafe_hash=False)
class OutputContractPostprocess:
    """`postprocess[]`."""

    type: Literal["dereference_selected_reference"] | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class OutputContractSpec:
    """`routing.decisions[].output_contract_spec`."""

    type: Literal["choice", "structured_json", "reference_selection"] | None = None
    choice_set: OutputContractChoiceSetSpec | None = None
    json_schema: OutputContractJSONSchemaSpec | None = None
    reference: OutputContractReferenceSpec | None = None
    render: OutputContractRenderSpec | None = None
    extract: OutputContractExtractSpec | None = None
    normalize: OutputContractNormalizeSpec | None = None
    postprocess: tuple[OutputContractPostprocess, ...] = ()
