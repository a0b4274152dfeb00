"""The authored document, word for word: version v0.3 as a whole."""

import attrs

from vsr.config.document.decisions import DecisionReliability
from vsr.config.document.evaluation import Evaluation
from vsr.config.document.integrations import Integrations
from vsr.config.document.listeners import Listener
from vsr.config.document.model_catalog import ModelCatalog
from vsr.config.document.providers import Providers
from vsr.config.document.router_settings import RouterSettings
from vsr.config.document.routing import RecipeRouting, Routing
from vsr.config.document.services import Services
from vsr.config.document.stores import Stores


@attrs.frozen(repr=False, unsafe_hash=False)
class Entrypoint:
    """`entrypoints[]`: virtual model names and the recipe behind them.

    `reliability` is not in the canonical document.
    """

    model_names: tuple[str, ...] = ()
    recipe: str = ""
    reliability: DecisionReliability | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class Recipe:
    """`recipes[]`: a further routing profile."""

    name: str = ""
    description: str | None = None
    routing: RecipeRouting = attrs.field(factory=RecipeRouting)


@attrs.frozen(repr=False, unsafe_hash=False)
class Global:
    """`global`."""

    router: RouterSettings = attrs.field(factory=RouterSettings)
    services: Services = attrs.field(factory=Services)
    stores: Stores = attrs.field(factory=Stores)
    integrations: Integrations = attrs.field(factory=Integrations)
    model_catalog: ModelCatalog = attrs.field(factory=ModelCatalog)


@attrs.frozen(repr=False, unsafe_hash=False)
class Setup:
    """`setup`: the mark of a workspace that is being set up; control data of the command line."""

    mode: bool = False
    state: str | None = None
    created_by: str | None = None
    created_at: str | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class Document:
    """The whole document; a field's trailing underscore is not part of its key."""

    version: str = "v0.3"
    listeners: tuple[Listener, ...] | None = None
    providers: Providers = attrs.field(factory=Providers)
    evaluation: Evaluation | None = None
    routing: Routing = attrs.field(factory=Routing)
    entrypoints: tuple[Entrypoint, ...] = ()
    recipes: tuple[Recipe, ...] = ()
    global_: Global = Global()
    setup: Setup | None = None
