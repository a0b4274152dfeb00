"""What provider models and their backends must hold to be compiled."""

import re
from collections.abc import Mapping

from vsr.config.address import DEFAULT_PORTS
from vsr.config.backend import Backend, backend_name, is_chat_path, resolve_backend
from vsr.config.checks import (
    check_duration,
    check_names,
    check_text,
    check_word,
    is_header_name,
    is_header_value,
    suggestion,
)
from vsr.config.document import BackendRef, ProviderModel, Providers, Reliability
from vsr.config.position import Path
from vsr.config.providers import CHAT, PROVIDERS, Provider
from vsr.config.report import Report

_MODELS: Path = ("providers", "models")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MAX_WEIGHT = 2**32 - 1
# The connection owns these: a copy from the document would break framing or routing.
_RESERVED_HEADERS = frozenset(
    {
        "connection",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)


def check_providers(providers: Providers, environ: Mapping[str, str], report: Report) -> None:
    """Report every fault of `providers`."""
    models = providers.models
    check_names((((*_MODELS, at, "name"), each.name) for at, each in enumerate(models)), report)
    for at, model in enumerate(models):
        _check_model(model, environ, (*_MODELS, at), report)
    default = providers.defaults.model
    path: Path = ("providers", "defaults", "model")
    if default is not None:
        check_model_name(path, default, {model.name for model in models}, report)


def check_model_name(path: Path, name: str, models: set[str], report: Report) -> None:
    """The name is one of `providers.models`."""
    if not name:
        report.add(path, "is missing or blank", mend="name one of providers.models")
    elif name not in models and report.is_whole(_MODELS):
        mend = suggestion(name, models) if models else "add it there"
        report.add(
            path, f"{report.quote(path)} is not the name of any of providers.models", "", mend
        )


def _check_model(
    model: ProviderModel, environ: Mapping[str, str], path: Path, report: Report
) -> None:
    if model.provider_model_id is not None:
        check_text((*path, "provider_model_id"), model.provider_model_id, report)
    for provider, native in model.external_model_ids.items():
        place = (*path, "external_model_ids", provider)
        check_text(place, native, report)
        _check_provider_name(place, provider, report)
    if model.api_format is not None:
        check_word(
            (*path, "api_format"), "ProviderModel.api_format", model.api_format, (CHAT,), report
        )
    _check_reliability(model.reliability, (*path, "reliability"), report)
    _check_backends(model, environ, (*path, "backend_refs"), report)


def _check_reliability(reliability: Reliability, path: Path, report: Report) -> None:
    policy = reliability.lb_policy
    check_word((*path, "lb_policy"), "Reliability.lb_policy", policy, ("round_robin",), report)
    connect = reliability.connect_timeout
    check_duration((*path, "connect_timeout"), connect, report, may_be_zero=False)
    for key, timeout in (
        ("total_timeout", reliability.total_timeout),
        ("idle_timeout", reliability.idle_timeout),
    ):
        if timeout is not None:
            check_duration((*path, key), timeout, report)


def _check_backends(
    model: ProviderModel, environ: Mapping[str, str], path: Path, report: Report
) -> None:
    if not model.backend_refs:
        report.add(path, "has no backend", "a model is served by at least one", "add one")
    names = [backend_name(ref, at) for at, ref in enumerate(model.backend_refs)]
    check_names((((*path, at, "name"), name) for at, name in enumerate(names)), report)
    first: Backend | None = None
    for at, ref in enumerate(model.backend_refs):
        place = (*path, at)
        _check_backend(ref, model.api_format, environ, place, report)
        backend = _resolved(ref, place, report)
        if backend is not None and first is not None:
            _check_same(first, backend, place, report)
        first = first or backend


def _check_backend(
    ref: BackendRef,
    api_format: str | None,
    environ: Mapping[str, str],
    path: Path,
    report: Report,
) -> None:
    if not 0 <= ref.weight <= _MAX_WEIGHT:
        report.add((*path, "weight"), f"must be from 0 to {_MAX_WEIGHT}")
    if ref.protocol is not None:
        check_word(
            (*path, "protocol"), "BackendRef.protocol", ref.protocol.lower(), DEFAULT_PORTS, report
        )
    if _check_provider_name((*path, "provider"), ref.provider, report):
        provider = PROVIDERS[ref.provider]
        _check_protocol(provider, api_format, (*path, "provider"), report)
        _check_credential(ref, provider, environ, path, report)
        if ref.api_version is not None:
            check_text((*path, "api_version"), ref.api_version, report)
        if ref.api_version is not None and not provider.takes_api_version:
            what = f"the provider {ref.provider!r} takes no API version"
            report.add((*path, "api_version"), what, mend="remove it")
    if ref.chat_path is not None and not is_chat_path(ref.chat_path):
        why = "it takes a path that begins with / and holds visible ASCII only"
        report.add((*path, "chat_path"), "is not a path", why)
    _check_extra_headers(ref.extra_headers, (*path, "extra_headers"), report)


def _check_provider_name(path: Path, provider: str, report: Report) -> bool:
    if provider in PROVIDERS:
        return True
    what = f"{report.quote(path)} is not a known provider"
    report.add(path, what, mend=suggestion(provider, PROVIDERS))
    return False


def _check_protocol(provider: Provider, api_format: str | None, path: Path, report: Report) -> None:
    if CHAT not in provider.protocols:
        what = f"{report.quote(path)} is not served by this version"
        report.add(path, what, "it does not speak chat completions", "use another provider")
    elif api_format is None and provider.protocols[0] != CHAT:
        why = f"{report.quote(path)} speaks {provider.protocols[0]!r} unless told otherwise"
        what = "the wire protocol is not served by this version"
        report.add(path, what, why, f"write `api_format: {CHAT}` on the model")


def _check_credential(
    ref: BackendRef,
    provider: Provider,
    environ: Mapping[str, str],
    path: Path,
    report: Report,
) -> None:
    # Nothing is quoted here: a misplaced key would show.
    if ref.auth_header is not None and not is_header_name(ref.auth_header):
        report.add((*path, "auth_header"), "is no header name")
    if ref.auth_prefix and not is_header_value(ref.auth_prefix):
        report.add((*path, "auth_prefix"), "a header line can't carry it")
    place = (*path, "api_key_env" if ref.api_key is None else "api_key")
    if ref.api_key is None and ref.api_key_env is None:
        return
    if (ref.auth_header or provider.auth_header) is None:
        what = f"the provider {ref.provider!r} takes no credential"
        report.add(place, what, mend="remove it or give auth_header")
    elif ref.api_key is not None:
        _check_key(ref.api_key, place, report)
    elif not _VARIABLE.fullmatch(ref.api_key_env or ""):
        mend = "an inline credential goes under api_key"
        report.add(place, "is not the name of an environment variable", mend=mend)
    elif not environ.get(ref.api_key_env or ""):
        what = f"the environment variable {report.quote(place)} is not set"
        report.add(place, what, "the backend's credential comes from it", "set it before loading")
    else:
        _check_key(environ[ref.api_key_env or ""], place, report)


def _check_key(key: str, path: Path, report: Report) -> None:
    if not is_header_value(key):
        why = "it is empty, begins or ends with a blank, or holds other than visible ASCII"
        report.add(path, "a header line can't carry this credential", why)


def _check_extra_headers(headers: Mapping[str, str], path: Path, report: Report) -> None:
    seen: set[str] = set()
    for name, value in headers.items():
        place = (*path, name)
        if not is_header_name(name):
            report.add(place, "is no header name")
        elif name.lower() in _RESERVED_HEADERS:
            report.add(place, "can't be set", "the connection owns this header", "remove it")
        elif name.lower() in seen:
            report.add(place, "is given twice", "case does not matter in header names")
        if not is_header_value(value):
            why = "it is empty, begins or ends with a blank, or holds other than visible ASCII"
            report.add(place, "a header line can't carry this value", why)
        seen.add(name.lower())


def _resolved(ref: BackendRef, path: Path, report: Report) -> Backend | None:
    if ref.provider not in PROVIDERS:
        return None
    if ref.base_url is not None and ref.endpoint is not None:
        report.add((*path, "endpoint"), "excludes base_url", mend="keep one of the two")
        return None
    place = path
    if ref.base_url is not None or ref.endpoint is not None:
        place = (*path, "endpoint" if ref.base_url is None else "base_url")
    try:
        return resolve_backend(ref)
    except ValueError as error:
        mend = "" if place != path else "give base_url or endpoint"
        report.add(place, "is not the address of a backend", str(error), mend)
        return None


def _check_same(first: Backend, other: Backend, path: Path, report: Report) -> None:
    differ = [
        words
        for words, one, another in (
            ("provider", first.provider, other.provider),
            ("URL scheme", first.address.scheme, other.address.scheme),
            ("base path", first.address.base_path, other.address.base_path),
            ("credential", first.credential_source, other.credential_source),
            ("auth header", first.auth_header, other.auth_header),
            ("auth prefix", first.auth_prefix, other.auth_prefix),
            ("extra headers", first.headers, other.headers),
            ("API version", first.api_version, other.api_version),
            ("chat path", first.chat_path, other.chat_path),
        )
        if one != another
    ]
    if differ:
        report.add(
            path,
            f"differs from the model's first backend in {', '.join(differ)}",
            "all backends of one model are called alike",
            "make them equal or give this backend a model of its own",
        )
