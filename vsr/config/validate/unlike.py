"""What backends of one model may differ in, and where they may not."""

from vsr.config.backend import Backend, resolve_backend, wire_protocols
from vsr.config.document.providers import ProviderModel
from vsr.config.document.root import Document
from vsr.config.position import Path
from vsr.config.report import Report
from vsr.config.validate.models import CARDS, MODELS, models_of


def check_adapters(document: Document, report: Report) -> None:
    """A model with adapters has backends of one provider, since all are asked for them by name."""
    models = models_of(document)
    for model in document.providers.models:
        providers = dict.fromkeys(ref.provider for ref in model.backend_refs)
        if len(providers) < 2 or not models.loras_of(model.name):  # noqa: PLR2004  # one and another
            continue
        cards = document.routing.modelCards
        at = next(at for at, card in enumerate(cards) if card.name in {model.name, model.catalog})
        what = f"can't be served by a model with backends of {', '.join(providers)}"
        why = "an adapter has one name, which the other provider does not know"
        mend = "give the backends of the other provider a model of their own"
        report.add((*CARDS, at, "loras"), what, why, mend)


def check_alike(document: Document, report: Report) -> None:
    """All backends of a model are called alike, as one cluster of an Envoy calls them.

    Source: the canonical configuration document, "One cluster, homogeneous backends".
    """
    for at, model in enumerate(document.providers.models):
        _check_model(model, (*MODELS, at, "backend_refs"), report)


def _check_model(model: ProviderModel, path: Path, report: Report) -> None:
    first, *others = (
        (protocol, resolve_backend(ref, protocol))
        for ref, protocol in zip(model.backend_refs, wire_protocols(model), strict=True)
    )
    for at, other in enumerate(others, 1):
        differ = _differences(first[1], other[1])
        if first[0] != other[0]:
            differ.insert(0, "api_format")
        if differ:
            report.add(
                (*path, at),
                f"differs from the model's first backend in {', '.join(differ)}",
                "an Envoy calls all backends of one model alike",
                "serve with --gateway standalone or give this backend a model of its own",
            )


def _differences(first: Backend, other: Backend) -> list[str]:
    compared = (
        ("provider", first.provider, other.provider),
        ("URL scheme", first.address.scheme, other.address.scheme),
        ("base path", first.address.base_path, other.address.base_path),
        ("credential", first.credential_source, other.credential_source),
        ("auth header", first.auth_header, other.auth_header),
        ("auth prefix", first.auth_prefix, other.auth_prefix),
        ("extra headers", first.headers, other.headers),
        ("API version", first.api_version, other.api_version),
        ("path", first.path, other.path),
    )
    return [words for words, one, another in compared if one != another]
