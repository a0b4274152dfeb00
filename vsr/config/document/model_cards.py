"""`routing.modelCards[]`: what is known about a model."""

from typing import Literal

from vsr.config.document.kinds import Positive
from vsr.config.document.objects import DocumentObject


class Presentation(DocumentObject, frozen=True):
    """`routing.modelCards[].presentation`."""

    logo: str | None = None
    monogram: str | None = None
    monochrome: bool | None = None


class Distribution(DocumentObject, frozen=True):
    """`routing.modelCards[].distribution`."""

    type: Literal["open_weights", "proprietary_api", "router_recipe"] | None = None
    source: str | None = None
    license: str | None = None


class Modalities(DocumentObject, frozen=True):
    """`routing.modelCards[].modalities`."""

    input: tuple[str, ...] = ()
    output: tuple[str, ...] = ()


class LoRAAdapter(DocumentObject, frozen=True):
    """`routing.modelCards[].loras[]`: an adapter that the base model serves."""

    name: str = ""
    description: str | None = None


class ModelCard(DocumentObject, frozen=True):
    """`routing.modelCards[]`: an overlay of a provider model."""

    name: str = ""
    display_name: str | None = None
    publisher: str | None = None
    presentation: Presentation | None = None
    distribution: Distribution | None = None
    family: str | None = None
    revision: str | None = None
    released_at: str | None = None
    knowledge_cutoff: str | None = None
    lifecycle: str | None = None
    param_size: str | None = None
    context_window_size: Positive | None = None
    max_output_tokens: Positive | None = None
    description: str | None = None
    capabilities: tuple[str, ...] = ()
    loras: tuple[LoRAAdapter, ...] = ()
    modalities: Modalities | None = None
    modality: str | None = None
    tags: tuple[str, ...] = ()
