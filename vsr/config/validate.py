"""What a structured document must hold to be compiled: bounds, words and references."""

from collections.abc import Mapping

from vsr.config.address import is_host
from vsr.config.checks import check_duration, check_names, check_text, check_word
from vsr.config.document import Document, Listener, RouterSettings
from vsr.config.names import auto_names
from vsr.config.position import Path
from vsr.config.report import Report
from vsr.config.validate_providers import check_providers
from vsr.config.validate_routing import STRATEGIES, check_routing

_MAX_PORT = 65_535


def validate(document: Document, environ: Mapping[str, str], report: Report) -> None:
    """Report every fault of `document`; `environ` must hold the credentials that it names."""
    if document.version != "v0.3":
        why = f"{report.quote(('version',))} is not"
        report.add(("version",), "must be v0.3", why, "write `version: v0.3`")
    _check_listeners(document.listeners or (), report)
    check_providers(document.providers, environ, report)
    check_routing(document.routing, {model.name for model in document.providers.models}, report)
    _check_router(document.global_.router, report)
    _check_auto_names(document, report)


def _check_listeners(listeners: tuple[Listener, ...], report: Report) -> None:
    root: Path = ("listeners",)
    check_names((((*root, at, "name"), each.name) for at, each in enumerate(listeners)), report)
    sockets: dict[tuple[str, int], int] = {}
    for at, listener in enumerate(listeners):
        path = (*root, at)
        _check_listener(listener, path, report)
        first = sockets.setdefault((listener.address, listener.port), at)
        if first != at:
            why = f"listeners[{first}] listens there already"
            report.add((*path, "port"), "is taken", why, "give each listener a port of its own")


def _check_listener(listener: Listener, path: Path, report: Report) -> None:
    if not is_host(listener.address):
        why = "it takes an IP address without brackets, or a host name"
        report.add((*path, "address"), "is missing or no address", why)
    if not 1 <= listener.port <= _MAX_PORT:
        report.add((*path, "port"), "must be from 1 to 65535")
    check_duration((*path, "timeout"), listener.timeout, report)
    for key, value in (
        ("max_body_bytes", listener.max_body_bytes),
        ("max_connections", listener.max_connections),
    ):
        if value < 1:
            report.add((*path, key), "must be at least 1")
    for at, api_key in enumerate(listener.api_keys):
        if not api_key or api_key != api_key.strip() or not api_key.isprintable():
            why = "it is empty, begins or ends with a blank, or holds a control character"
            mend = "check the environment variable if it comes from one"
            report.add((*path, "api_keys", at), "no client can send this key", why, mend)


def _check_router(router: RouterSettings, report: Report) -> None:
    path: Path = ("global", "router")
    source = router.config_source
    check_word((*path, "config_source"), "RouterSettings.config_source", source, ("file",), report)
    if router.strategy is not None:
        check_word(
            (*path, "strategy"), "RouterSettings.strategy", router.strategy, STRATEGIES, report
        )
    if not router.clear_route_cache:
        what = "false is not served by this version"
        report.add((*path, "clear_route_cache"), what, mend="remove it or write true")
    check_text((*path, "auto_model_name"), router.auto_model_name, report)
    names = router.auto_model_names or ()
    check_names((((*path, "auto_model_names", at), name) for at, name in enumerate(names)), report)


def _check_auto_names(document: Document, report: Report) -> None:
    automatic = auto_names(document.global_.router)
    for at, model in enumerate(document.providers.models):
        if model.name in automatic:
            path = ("providers", "models", at, "name")
            report.add(
                path,
                f"{report.quote(path)} is an automatic model name",
                "a request for it could mean the alias or the router's choice",
                "rename the model or set global.router.auto_model_names",
            )
