"""Checks of recipes, their profiles, and of the entrypoints that publish them."""

from vsr.config.attempt import Code
from vsr.config.checks import check_names, suggestion
from vsr.config.document.model_catalog import ModelCatalog
from vsr.config.document.root import Document, Recipe
from vsr.config.document.routing import RecipeRouting, Routing
from vsr.config.names import DEFAULT_RECIPE, auto_names
from vsr.config.position import Path
from vsr.config.report import Report
from vsr.config.validate.decisions import check_decisions
from vsr.config.validate.declared import COLLECTIONS, declared_by
from vsr.config.validate.graphs import check_graphs
from vsr.config.validate.models import Models
from vsr.config.validate.projections import check_projections
from vsr.config.validate.rules import check_rules
from vsr.config.validate.signals_heuristic import check_heuristic_signals
from vsr.config.validate.signals_learned import check_learned_signals

_RESERVED = "@global"
_CASELESS = frozenset({"metadata", "classifiers", "input_modality", "safety"})


def check_recipes(document: Document, models: Models, report: Report) -> None:
    """Report the faults of the default recipe, of all others and of the entrypoints."""
    catalog = document.global_.model_catalog
    _check_profile(document.routing, ("routing",), catalog, models, report)
    recipes = document.recipes
    check_names(((("recipes", at, "name"), each.name) for at, each in enumerate(recipes)), report)
    for at, recipe in enumerate(recipes):
        _check_recipe_name(recipe, document.routing, ("recipes", at, "name"), report)
        _check_profile(recipe.routing, ("recipes", at, "routing"), catalog, models, report)
    _check_entrypoints(document, models, report)


def _check_recipe_name(recipe: Recipe, routing: Routing, path: Path, report: Report) -> None:
    if recipe.name == _RESERVED:
        report.add(path, f"{_RESERVED} is reserved", mend="rename the recipe")
    if recipe.name == DEFAULT_RECIPE and _has_profile(routing):
        why = "the top-level routing is the default recipe already"
        mend = "rename the recipe or move that routing into it"
        report.add(path, "is taken", why, mend, code=Code.DUPLICATE_NAME)


def _has_profile(routing: RecipeRouting) -> bool:
    empty = Routing(modelCards=routing.modelCards) if isinstance(routing, Routing) else None
    return routing != empty


def _check_profile(
    routing: RecipeRouting, path: Path, catalog: ModelCatalog, models: Models, report: Report
) -> None:
    declared = declared_by(routing, path, catalog)
    signals = (*path, "signals")
    for collection in (*COLLECTIONS.values(), "hallucination"):
        rules = getattr(routing.signals, collection)
        fold = str.casefold if collection in _CASELESS else str
        place = (*signals, collection)
        names = (((*place, at, "name"), rule.name) for at, rule in enumerate(rules))
        check_names(names, report, fold=fold)
    check_heuristic_signals(routing.signals, signals, report)
    check_learned_signals(routing.signals, catalog, signals, report)
    for at, rule in enumerate(routing.signals.complexity):
        if rule.composer is not None:
            place = (*signals, "complexity", at, "composer")
            check_rules(rule.composer, declared, place, report)
    check_projections(routing, declared, report)
    check_graphs(routing.graphs, (*path, "graphs"), models, report)
    check_decisions(routing.decisions, declared, models, report)


def _check_entrypoints(document: Document, models: Models, report: Report) -> None:
    known = {DEFAULT_RECIPE, *(recipe.name.strip() for recipe in document.recipes)}
    owners = _owners(document, models)
    for at, entrypoint in enumerate(document.entrypoints):
        path: Path = ("entrypoints", at)
        place = (*path, "recipe")
        if not entrypoint.recipe.strip():
            report.add(place, "is missing or blank", mend="name a recipe")
        elif entrypoint.recipe.strip() not in known and report.is_whole(("recipes",)):
            what = f"{report.quote(place)} is not the name of a recipe"
            report.add(
                place,
                what,
                mend=suggestion(entrypoint.recipe, known),
                code=Code.UNRESOLVED_REFERENCE,
            )
        names = dict.fromkeys(name.strip() for name in entrypoint.model_names)
        if not any(names):
            mend = "give at least one name"
            report.add((*path, "model_names"), "is missing or empty", mend=mend)
        for name in filter(None, names):
            index = [each.strip() for each in entrypoint.model_names].index(name)
            if name in owners:
                where = (*path, "model_names", index)
                what = f"the name {report.quote(where)} is taken"
                report.add(
                    where, what, f"it is {owners[name]}", "choose another", code=Code.DUPLICATE_NAME
                )
            owners.setdefault(name, f"a name of entrypoints[{at}]")


def _owners(document: Document, models: Models) -> dict[str, str]:
    """Return who has a name that clients may ask for."""
    cards = dict.fromkeys(models.cards, "a model card")
    loras = dict.fromkeys(models.loras, "an adapter")
    aliases = dict.fromkeys(models.aliases, "a model of providers.models")
    automatic = dict.fromkeys(auto_names(document.global_.router), "an automatic name")
    loopers = dict.fromkeys(models.loopers, "the name of an algorithm")
    return {**cards, **loras, **aliases, **automatic, **loopers}
