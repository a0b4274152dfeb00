"""Checks of `providers`: models with their prices, reliability and reasoning."""

import re

from vsr.config.checks import check_names, check_text, suggestion
from vsr.config.document.providers import Pricing, ProviderModel, Providers, Reliability
from vsr.config.position import Path
from vsr.config.providers import PROVIDERS
from vsr.config.quantities import parse_duration_s
from vsr.config.report import Report
from vsr.config.validate.backends import check_backends
from vsr.config.validate.models import MODELS
from vsr.config.validate.reasoning import check_reasoning

_CURRENCY = re.compile(r"[A-Z]{3}")
DEFAULT_BACK_OFF = "25ms"
"""The first wait before a retry. Source: the reference's reliability defaults."""


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
    check_reliability(model.reliability, (*path, "reliability"), report)
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


def check_reliability(reliability: Reliability, path: Path, report: Report) -> None:
    """What the types of a model's reliability leave open."""
    check_back_off(reliability.retry_back_off_base, reliability.retry_back_off_max, path, report)
    check_retry_on(reliability.retry_on, path, report)
    health_path = reliability.health_check_path
    if health_path is not None and not health_path.startswith("/"):
        report.add((*path, "health_check_path"), "is not a path", mend="begin it with /")


def check_retry_on(retry_on: str | None, path: Path, report: Report) -> None:
    """A list of retry conditions names at least one."""
    if retry_on is not None and not retry_on.replace(",", "").strip():
        why = "it names no condition"
        report.add((*path, "retry_on"), "is blank", why, "write connect-failure,refused-stream")


def check_back_off(base: str | None, maximum: str | None, path: Path, report: Report) -> None:
    """The longest wait is no shorter than the first."""
    keys = ((*path, "retry_back_off_base"), (*path, "retry_back_off_max"))
    if maximum is None or any(report.is_broken(key) for key in keys):
        return
    if parse_duration_s(maximum) < parse_duration_s(base or DEFAULT_BACK_OFF):
        why = f"the base is {base or DEFAULT_BACK_OFF}"
        report.add(keys[1], "is shorter than retry_back_off_base", why, "make it at least that")
