"""All checks of a structured document, every problem at once."""

from vsr.config.document.root import Document
from vsr.config.names import auto_names
from vsr.config.report import Report
from vsr.config.validate.egress import check_egress
from vsr.config.validate.fallback import check_fallbacks
from vsr.config.validate.global_settings import check_global
from vsr.config.validate.listeners import check_listeners
from vsr.config.validate.models import check_cards, check_default_model, models_of
from vsr.config.validate.providers import check_providers
from vsr.config.validate.recipes import check_recipes
from vsr.config.validate.reliability import check_reliability
from vsr.config.validate.unlike import check_adapters


def validate(document: Document, report: Report) -> None:
    """Report every fault of `document`.

    What this version can't serve yet is no fault; `serving` looks for that.
    """
    if document.version != "v0.3":
        why = f"{report.quote(('version',))} is not"
        report.add(("version",), "must be v0.3", why, "write `version: v0.3`")
    check_listeners(document.listeners or (), report)
    models = models_of(document)
    check_providers(document.providers, report, has_transport=document.listeners != ())
    check_default_model(document.providers.defaults.model, models, report)
    check_cards(document.routing.modelCards, models, report)
    check_adapters(document, report)
    check_recipes(document, models, report)
    check_global(document.global_, report)
    check_egress(document, report)
    check_reliability(document, report)
    check_fallbacks(document, report)
    _check_auto_names(document, report)


def _check_auto_names(document: Document, report: Report) -> None:
    automatic = auto_names(document.global_.router)
    for at, model in enumerate(document.providers.models):
        if model.name in automatic:
            path = ("providers", "models", at, "name")
            # The reference takes such documents; the automatic name wins.
            report.warn(
                path,
                f"{report.quote(path)} is an automatic model name, requests for it are routed",
                "rename the model or set global.router.auto_model_names",
            )
