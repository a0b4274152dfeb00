"""The authored document, word for word: version v0.3 as a whole."""

import msgspec

from vsr.config.document.decisions import DecisionReliability
from vsr.config.document.evaluation import Evaluation
from vsr.config.document.integrations import Integrations
from vsr.config.document.listeners import Listener
from vsr.config.document.model_catalog import ModelCatalog
from vsr.config.document.objects import DocumentObject
from vsr.config.document.providers import Providers
from vsr.config.document.router_settings import RouterSettings
from vsr.config.document.routing import RecipeRouting, Routing
from vsr.config.document.services import Services
from vsr.config.document.stores import Stores


class Entrypoint(DocumentObject, frozen=True):
    """`entrypoints[]`: virtual model names and the recipe behind them.

    `reliability` is not in the canonical document.
    """

    model_names: tuple[str, ...] = ()
    recipe: str = ""
    reliability: DecisionReliability | None = None


class Recipe(DocumentObject, frozen=True):
    """`recipes[]`: a further routing profile."""

    name: str = ""
    description: str | None = None
    routing: RecipeRouting = msgspec.field(default_factory=RecipeRouting)


class Global(DocumentObject, frozen=True):
    """`global`."""

    router: RouterSettings = msgspec.field(default_factory=RouterSettings)
    services: Services = msgspec.field(default_factory=Services)
    stores: Stores = msgspec.field(default_factory=Stores)
    integrations: Integrations = msgspec.field(default_factory=Integrations)
    model_catalog: ModelCatalog = msgspec.field(default_factory=ModelCatalog)


class Setup(DocumentObject, frozen=True):
    """`setup`: the mark of a workspace that is being set up; control data of the command line."""

    mode: bool = False
    state: str | None = None
    created_by: str | None = None
    created_at: str | None = None


class Document(DocumentObject, frozen=True):
    """The whole document; a field's trailing underscore is not part of its key."""

    version: str = "v0.3"
    listeners: tuple[Listener, ...] | None = None
    providers: Providers = msgspec.field(default_factory=Providers)
    evaluation: Evaluation | None = None
    routing: Routing = msgspec.field(default_factory=Routing)
    entrypoints: tuple[Entrypoint, ...] = ()
    recipes: tuple[Recipe, ...] = ()
    global_: Global = Global()
    setup: Setup | None = None
