"""The model names that a document declares, and references to them."""

from collections.abc import Mapping

import msgspec

from vsr.config.attempt import Code
from vsr.config.checks import check_names, suggestion
from vsr.config.document.model_cards import ModelCard
from vsr.config.document.providers import ProviderModel
from vsr.config.document.root import Document
from vsr.config.names import looper_names
from vsr.config.position import Path, dotted
from vsr.config.report import Report

MODELS: Path = ("providers", "models")
CARDS: Path = ("routing", "modelCards")


class Models(msgspec.Struct, frozen=True):
    """What references to models may name."""

    aliases: Mapping[str, ProviderModel]
    cards: Mapping[str, ModelCard]
    loras: frozenset[str]
    loopers: Mapping[str, str] = msgspec.field(default_factory=dict)
    """By the model name that runs only an algorithm's decisions, the algorithm."""

    def referable(self) -> tuple[str, ...]:
        """Return the names that decisions may name: aliases, without any also model cards."""
        return tuple(self.aliases) or (*self.cards, *sorted(self.loras))

    def loras_of(self, model: str) -> tuple[str, ...]:
        """Return the adapters that the model's card declares."""
        alias = self.aliases.get(model)
        bound = None if alias is None else alias.catalog
        card = self.cards.get(model) or self.cards.get(bound or "")
        return () if card is None else tuple(lora.name for lora in card.loras)


def models_of(document: Document) -> Models:
    """Return the model names of `document`."""
    cards = {card.name: card for card in document.routing.modelCards}
    return Models(
        aliases={model.name: model for model in document.providers.models},
        cards=cards,
        loras=frozenset(lora.name for card in cards.values() for lora in card.loras),
        loopers=looper_names(document.global_.integrations),
    )


def check_model_name(path: Path, name: str, models: Models, report: Report) -> None:
    """The name is a referable one; a document without any model may name what it likes."""
    if not name.strip():
        report.add(path, "is missing or blank", mend="name one of providers.models")
        return
    known = models.referable()
    where = MODELS if models.aliases else CARDS
    if not known or name in known or not report.is_whole(where):
        return
    what = f"{report.quote(path)} is not the name of any of {dotted(where)}"
    report.add(path, what, mend=suggestion(name, known), code=Code.UNRESOLVED_REFERENCE)


def check_default_model(name: str | None, models: Models, report: Report) -> None:
    """The default model is an alias or an adapter, without aliases a model card."""
    if name is None or name in models.loras:
        return
    check_model_name(("providers", "defaults", "model"), name, models, report)


def check_cards(cards: tuple[ModelCard, ...], models: Models, report: Report) -> None:
    """Model cards have names of their own that belong to a model, and adapters with names."""
    check_names((((*CARDS, at, "name"), card.name) for at, card in enumerate(cards)), report)
    catalogs = {model.catalog for model in models.aliases.values() if model.catalog}
    for at, card in enumerate(cards):
        path = (*CARDS, at)
        if card.name and models.aliases and card.name not in catalogs | models.loras:
            _check_card_name((*path, "name"), card.name, models, report)
        check_names(
            (((*path, "loras", index, "name"), each.name) for index, each in enumerate(card.loras)),
            report,
        )


def _check_card_name(path: Path, name: str, models: Models, report: Report) -> None:
    model = models.aliases.get(name)
    if model is not None and model.catalog is not None:
        why = f"the model {name!r} is bound to the catalog"
        report.add(path, "names an alias", why, f"name the card {model.catalog!r}")
    elif model is None:
        check_model_name(path, name, models, report)
