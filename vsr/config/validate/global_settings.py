"""Checks of `global`."""

from collections.abc import Mapping

from vsr.config.address import is_host
from vsr.config.checks import check_names, check_text, check_word, is_header_name, suggestion
from vsr.config.document.bindings import ModelBinding
from vsr.config.document.integrations import Integrations
from vsr.config.document.model_catalog import ModelCatalog
from vsr.config.document.root import Global
from vsr.config.document.router_settings import RouterSettings
from vsr.config.document.services import (
    AuthzConfig,
    ManagementAPIConfig,
    RateLimitProviderConfig,
    Services,
)
from vsr.config.position import Path
from vsr.config.providers import PROVIDERS
from vsr.config.report import Report
from vsr.config.validate.backends import check_extra_headers
from vsr.config.validate.listeners import check_tls
from vsr.config.validate.observability import check_observability

STRATEGIES = ("priority", "confidence")
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
BUILT_IN_DEPLOYMENTS = ("hazard",)


def check_global(settings: Global, report: Report) -> None:
    """Report every fault of `global`."""
    _check_router(settings.router, report)
    _check_services(settings.services, report)
    _check_integrations(settings.integrations, report)
    _check_catalog(settings.model_catalog, report)
    memory = settings.stores.vector_store
    if memory is not None and memory.enabled and memory.backend_type is None:
        path: Path = ("global", "stores", "vector_store", "backend_type")
        report.add(path, "is missing", "an enabled vector store has one", "name the backend")


def _check_router(router: RouterSettings, report: Report) -> None:
    path: Path = ("global", "router")
    if router.strategy is not None:
        check_word((*path, "strategy"), router.strategy, STRATEGIES, report)
    check_text((*path, "auto_model_name"), router.auto_model_name, report)
    names = router.auto_model_names or ()
    check_names((((*path, "auto_model_names", at), name) for at, name in enumerate(names)), report)
    learning = router.learning
    store = None if learning is None else learning.state_store
    if store is not None and store.backend == "redis" and store.redis is None:
        place = (*path, "learning", "state_store", "redis")
        report.add(place, "is missing", "the backend is redis", "say where it is")


def _check_services(services: Services, report: Report) -> None:
    root: Path = ("global", "services")
    limits = services.ratelimit
    for at, provider in enumerate(() if limits is None else limits.providers):
        _check_rate_limit(provider, (*root, "ratelimit", "providers", at), report)
    if services.authz is not None:
        _check_authz(services.authz, (*root, "authz"), report)
    if services.observability is not None:
        check_observability(services.observability, (*root, "observability"), report)
    if services.management_api is not None:
        _check_management(services.management_api, (*root, "management_api"), report)


def _check_authz(authz: AuthzConfig, path: Path, report: Report) -> None:
    for key, name in (
        ("user_id_header", authz.identity.user_id_header),
        ("user_groups_header", authz.identity.user_groups_header),
    ):
        _check_header((*path, "identity", key), name, report)
    for at, link in enumerate(authz.providers):
        place = (*path, "providers", at)
        if link.type is None:
            mend = "write header-injection or static-config"
            report.add((*place, "type"), "is missing", mend=mend)
        elif link.type == "static-config" and link.headers:
            what = "has no effect: a static-config reads no header"
            report.warn((*place, "headers"), what, "remove it")
        for provider, name in link.headers.items():
            _check_header((*place, "headers", provider), name, report)
            if provider not in PROVIDERS:
                what = f"has no effect: {provider!r} is not a known provider"
                report.warn((*place, "headers", provider), what, suggestion(provider, PROVIDERS))


def _check_header(path: Path, name: str, report: Report) -> None:
    if not is_header_name(name.strip()):
        report.add(path, "is no header name", mend="name a header")


def _check_rate_limit(provider: RateLimitProviderConfig, path: Path, report: Report) -> None:
    if provider.type is None:
        mend = "write local-limiter or envoy-ratelimit"
        report.add((*path, "type"), "is missing", mend=mend)
    elif provider.type == "envoy-ratelimit" and not provider.address:
        report.add((*path, "address"), "is missing", "the service is asked there", "add it")
    elif provider.type == "local-limiter" and not provider.rules:
        report.add((*path, "rules"), "is missing or empty", "it limits nothing", "add a rule")


def _check_management(api: ManagementAPIConfig, path: Path, report: Report) -> None:
    if not is_host(api.bind_address):
        why = "it takes an IP address without brackets, or a host name"
        report.add((*path, "bind_address"), "is no address", why)
    if api.tls is not None:
        check_tls(api.tls, (*path, "tls"), report)
    if api.bind_address not in _LOOPBACK and not api.remote_exposure:
        # Whether the environment allows it is looked at where the API is bound.
        what = "lets others reach the management API"
        report.warn((*path, "bind_address"), what, "bind 127.0.0.1, or set remote_exposure")
    has_tokens = api.auth is not None and api.auth.mode == "bearer" and bool(api.auth.tokens)
    if api.remote_exposure and not has_tokens:
        why = "others can reach the management API"
        mend = "write mode: bearer and at least one of tokens"
        report.add((*path, "auth"), "must ask for a token", why, mend)


def _check_integrations(integrations: Integrations, report: Report) -> None:
    looper = integrations.looper
    if looper is None:
        return
    path: Path = ("global", "integrations", "looper")
    for key in ("remom", "fusion", "flow"):
        block = getattr(looper, key)
        for at, name in enumerate(() if block is None else block.model_names or ()):
            if not name.strip():
                report.add((*path, key, "model_names", at), "is blank", mend="remove it")
    check_extra_headers(looper.headers, (*path, "headers"), report)
    state = None if looper.flow is None else looper.flow.state
    redis = None if state is None else state.redis
    for key in ("db", "max_retries", "pool_size"):
        if redis is not None and (getattr(redis, key) or 0) < 0:
            report.add((*path, "flow", "state", "redis", key), "must not be negative")
    if looper.endpoint:
        what = "has no effect: calls between models never leave the Router"
        report.warn((*path, "endpoint"), what, "remove it")


def _check_catalog(catalog: ModelCatalog, report: Report) -> None:
    root: Path = ("global", "model_catalog")
    bases = catalog.kbs or ()
    check_names((((*root, "kbs", at, "name"), each.name) for at, each in enumerate(bases)), report)
    for at, base in enumerate(bases):
        if base.source is None or not base.source.path:
            place = (*root, "kbs", at, "source", "path")
            report.add(place, "is missing", "the labels are read from there", "add it")
        for index, metric in enumerate(base.metrics):
            place = (*root, "kbs", at, "metrics", index)
            for key in ("positive_group", "negative_group"):
                group = getattr(metric, key)
                if group is not None and group not in base.groups:
                    what = f"{report.quote((*place, key))} is not a group of {base.name!r}"
                    report.add((*place, key), what, mend=suggestion(group, base.groups))
    _check_bindings(catalog.bindings, catalog, (*root, "bindings"), report)
    externals = [model.name for model in catalog.external]
    for name, deployment in catalog.deployments.items():
        place = (*root, "deployments", name, "external_model")
        if deployment.external_model is not None and deployment.external_model not in externals:
            what = f"{report.quote(place)} is not the name of an external model"
            report.add(place, what, mend="declare it under global.model_catalog.external")


def _check_bindings(
    bindings: Mapping[str, ModelBinding], catalog: ModelCatalog, path: Path, report: Report
) -> None:
    known = (*catalog.deployments, *BUILT_IN_DEPLOYMENTS)
    for name, binding in bindings.items():
        place = (*path, name, "deployment")
        if binding.deployment and binding.deployment not in known:
            what = f"{report.quote(place)} is not the name of a deployment"
            report.add(place, what, mend=suggestion(binding.deployment, known))
