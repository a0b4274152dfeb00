"""Checks of `providers`: models with their prices and reasoning; reliability has its own."""

import re

from vsr.config.checks import check_names, check_text, suggestion
from vsr.config.document.providers import Pricing, ProviderModel, Providers
from vsr.config.position import Path
from vsr.config.providers import PROVIDERS
from vsr.config.report import Report
from vsr.config.validate.backends import check_backends
from vsr.config.validate.models import MODELS
from vsr.config.validate.reasoning import check_reasoning

_CURRENCY = re.compile(r"[A-Z]{3}")


def check_providers(providers: Providers, report: Report, *, has_transport: bool) -> None:
    """Report every fault of `providers`.

    Args:
        providers: as authored.
        report: gets the faults.
        has_transport: false when the document leaves listeners to somebody else.
    """
    models = providers.models
    check_names((((*MODELS, at, "name"), each.name) for at, each in enumerate(models)), report)
    for at, model in enumerate(models):
        _check_model(model, (*MODELS, at), report, has_transport=has_transport)


def _check_model(model: ProviderModel, path: Path, report: Report, *, has_transport: bool) -> None:
    if model.provider_model_id is not None:
        check_text((*path, "provider_model_id"), model.provider_model_id, report)
    _check_external_ids(model, (*path, "external_model_ids"), report)
    if model.reasoning is not None:
        place = (*path, "reasoning")
        if model.catalog is not None:
            report.add(place, "excludes catalog", "the catalog says it", "keep one of the two")
        check_reasoning(model.reasoning, place, report)
    if model.pricing is not None:
        _check_pricing(model.pricing, (*path, "pricing"), report)
    if model.backend_refs:
        check_backends(model, (*path, "backend_refs"), report)
    elif has_transport or not _has_metadata(model):
        why = "a model is served by at least one"
        report.add((*path, "backend_refs"), "has no backend", why, "add one")


def _check_external_ids(model: ProviderModel, path: Path, report: Report) -> None:
    for provider, native in model.external_model_ids.items():
        check_text((*path, provider), native, report)
        if provider not in PROVIDERS:
            # The reference takes them; they are only names that clients may use.
            hint = suggestion(provider, PROVIDERS)
            report.warn((*path, provider), "is under no known provider", hint)


def _has_metadata(model: ProviderModel) -> bool:
    return model != ProviderModel(name=model.name, pricing=Pricing()) and model != ProviderModel(
        name=model.name
    )


def _check_pricing(pricing: Pricing, path: Path, report: Report) -> None:
    if not _CURRENCY.fullmatch(pricing.currency):
        place = (*path, "currency")
        report.add(place, f"{report.quote(place)} is not a currency", mend="write it like USD")
