"""The snapshot of a document: listeners, routes and settings; clusters and programs beside."""

from collections.abc import Iterator, Mapping
from ipaddress import ip_network

from vsr.config.address import bound_address
from vsr.config.compile.clusters import compile_clusters
from vsr.config.compile.credentials import credential_chain
from vsr.config.compile.graphs import NO_GRAPHS, CompiledGraphs
from vsr.config.compile.loopers import looper_settings
from vsr.config.compile.programs import compile_programs
from vsr.config.compile.reliability import optional_override
from vsr.config.compile.tracing import compile_tracing
from vsr.config.document import listeners as authored
from vsr.config.document.integrations import LooperConfig
from vsr.config.document.root import Document
from vsr.config.document.services import AuthzConfig
from vsr.config.egress import egress_of
from vsr.config.management import compile_management
from vsr.config.names import (
    DEFAULT_RECIPE,
    PUBLISHED_AUTO_NAME,
    auto_names,
    default_routing,
    looper_names,
)
from vsr.config.networks import unmapped
from vsr.config.quantities import parse_duration_s
from vsr.resources.listener import Identity, Listener, ListenerTls
from vsr.resources.route import Route
from vsr.resources.snapshot import Settings, Snapshot

DEFAULT_LISTENERS = (authored.Listener(name="listener_0", address="0.0.0.0", port=8899),)  # noqa: S104  # the reference's listener of a document without any


def compile_snapshot(
    document: Document,
    *,
    sha256: str,
    environ: Mapping[str, str],
    files: Mapping[str, bytes],
    graphs: CompiledGraphs = NO_GRAPHS,
) -> Snapshot:
    """Return the resources of `document`, which was found valid and served.

    Args:
        document: the authored document.
        sha256: of its bytes.
        environ: must hold every variable that an `api_key_env` names.
        files: what every file holds that a `tls` of a backend names, by the path it writes.
        graphs: of all recipes.
    """
    listeners = DEFAULT_LISTENERS if document.listeners is None else document.listeners
    router = document.global_.router
    defaults = document.providers.defaults
    identity_headers = _identity_headers(document)
    return Snapshot(
        hash=sha256,
        listeners=tuple(_listener(each, identity_headers) for each in listeners),
        clusters=compile_clusters(document, environ, files),
        programs=compile_programs(document, graphs),
        routes=tuple(_routes(document)),
        settings=Settings(
            default_model=defaults.model,
            list_configured_models=router.include_config_models_in_list,
            default_reasoning_effort=(defaults.reasoning_effort or "").strip() or None,
            key_headers=credential_chain(document).header_names,
            may_skip_processing=router.skip_processing.enabled,
            looper=looper_settings(document.global_.integrations.looper or LooperConfig()),
            egress=egress_of(document),
        ),
        tracing=compile_tracing(document),
        management=compile_management(document),
    )


def _routes(document: Document) -> Iterator[Route]:
    router = document.global_.router
    # `auto` and the single name still route but are no longer published, unless an authored list
    # has them. Source: the reference's parity record `models-list`.
    listed = router.auto_model_names or (PUBLISHED_AUTO_NAME,)
    for name in auto_names(router):
        yield Route(name, DEFAULT_RECIPE, is_listed=name in listed)
    descriptions = {recipe.name: recipe.description or "" for recipe in document.recipes}
    for entrypoint in document.entrypoints:
        recipe = entrypoint.recipe.strip()
        calls = optional_override(entrypoint.reliability)
        for name in dict.fromkeys(each.strip() for each in entrypoint.model_names):
            description = descriptions.get(recipe, "")
            yield Route(name, recipe, description, is_builtin=False, calls=calls)
    yield from _looper_routes(document)


def _looper_routes(document: Document) -> Iterator[Route]:
    """Yield the names that run only an algorithm's decisions.

    An algorithm without any decision has none, unless its names were written: then who asks for
    one is told that no decision fits. Source: the reference, of what is listed too.
    """
    integrations = document.global_.integrations
    looper = integrations.looper or LooperConfig()
    blocks = {"remom": looper.remom, "fusion": looper.fusion, "workflows": looper.flow}
    used = {
        each.algorithm.type
        for each in default_routing(document).decisions
        if each.algorithm is not None
    }
    for name, algorithm in looper_names(integrations).items():
        block = blocks[algorithm]
        is_written = block is not None and bool(block.model_names)
        if algorithm in used or is_written:
            is_listed = algorithm in used or algorithm == "fusion"
            yield Route(name, DEFAULT_RECIPE, is_listed=is_listed, algorithm=algorithm)


def _identity_headers(document: Document) -> frozenset[bytes]:
    authz = document.global_.services.authz or AuthzConfig()
    names = (authz.identity.user_id_header, authz.identity.user_groups_header)
    return frozenset(name.strip().lower().encode() for name in names)


def _listener(listener: authored.Listener, identity_headers: frozenset[bytes]) -> Listener:
    tls, identity = listener.tls, listener.identity or authored.ListenerIdentity()
    return Listener(
        name=listener.name,
        address=bound_address(listener.address),
        port=listener.port,
        timeout_s=parse_duration_s(listener.timeout),
        api_keys=tuple(key.encode() for key in listener.api_keys),
        max_body_bytes=listener.max_body_bytes,
        max_connections=listener.max_connections,
        tls=None if tls is None else ListenerTls(tls.cert_file, tls.key_file),
        identity=Identity(
            header_names=identity_headers,
            is_trusted=identity.trust_headers,
            networks=tuple(
                unmapped(ip_network(each, strict=False)) for each in identity.trusted_peers
            ),
        ),
    )
