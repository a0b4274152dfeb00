"""`routing.decisions[].output_contract_spec`: the form an answer must have."""

from collections.abc import Mapping
from typing import Literal

import msgspec

from vsr.config.document.objects import DocumentObject


class OutputContractChoiceSetSpec(DocumentObject, frozen=True):
    """`choice_set`."""

    values: tuple[str, ...] = ()


class OutputContractJSONSchemaSpec(DocumentObject, frozen=True):
    """`json_schema`."""

    schema_ref: str | None = None


class OutputContractReferenceSpec(DocumentObject, frozen=True):
    """`reference`."""

    source: Literal["candidate_responses"] | None = None
    id_format: Literal["index", "reference_number"] | None = None


class OutputContractRenderSpec(DocumentObject, frozen=True):
    """`render`."""

    mode: Literal["value", "template"] | None = None
    template: str | None = None


class OutputContractExtractSpec(DocumentObject, frozen=True):
    """`extract`."""

    mode: Literal["exact", "json_object"] | None = None
    sources: tuple[Literal["content", "reasoning_content", "candidate_responses"], ...] = ()


class OutputContractNormalizeSpec(DocumentObject, frozen=True):
    """`normalize`."""

    defaults: Mapping[str, str] = msgspec.field(default_factory=dict)


class OutputContractPostprocess(DocumentObject, frozen=True):
    """`postprocess[]`."""

    type: Literal["dereference_selected_reference"] | None = None


class OutputContractSpec(DocumentObject, frozen=True):
    """`routing.decisions[].output_contract_spec`."""

    type: Literal["choice", "structured_json", "reference_selection"] | None = None
    choice_set: OutputContractChoiceSetSpec | None = None
    json_schema: OutputContractJSONSchemaSpec | None = None
    reference: OutputContractReferenceSpec | None = None
    render: OutputContractRenderSpec | None = None
    extract: OutputContractExtractSpec | None = None
    normalize: OutputContractNormalizeSpec | None = None
    postprocess: tuple[OutputContractPostprocess, ...] = ()
