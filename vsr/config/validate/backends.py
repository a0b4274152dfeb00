"""Checks of `providers.models[].backend_refs[]`."""

from collections.abc import Mapping

from vsr.config.address import DEFAULT_PORTS
from vsr.config.backend import Backend, backend_name, is_chat_path, resolve_backend, wire_protocols
from vsr.config.checks import (
    check_names,
    check_text,
    check_word,
    is_header_name,
    is_header_value,
    is_variable,
    suggestion,
)
from vsr.config.document.providers import BackendRef, ProviderModel
from vsr.config.position import Path
from vsr.config.providers import PROVIDERS, Provider
from vsr.config.report import Report
from vsr.config.validate.backend_tls import check_backend_tls

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


def check_backends(model: ProviderModel, path: Path, report: Report) -> None:
    """Each backend can be called; one of another kind than its neighbours too."""
    names = [backend_name(ref, at) for at, ref in enumerate(model.backend_refs)]
    check_names((((*path, at, "name"), name) for at, name in enumerate(names)), report)
    protocols = wire_protocols(model)
    for at, (ref, protocol) in enumerate(zip(model.backend_refs, protocols, strict=True)):
        place = (*path, at)
        _check_backend(ref, protocol, place, report)
        backend = _resolved(ref, protocol, place, report)
        if backend is not None:
            _check_http_version(ref, backend, place, report)
        if ref.tls is not None:
            check_backend_tls(ref.tls, backend, (*place, "tls"), report)
        if ref.health_check_path is not None:
            _check_health_path(model, ref.health_check_path, (*place, "health_check_path"), report)


def _check_backend(ref: BackendRef, protocol: str, path: Path, report: Report) -> None:
    if ref.protocol is not None:
        check_word((*path, "protocol"), ref.protocol.lower(), DEFAULT_PORTS, report)
    if _check_provider_name((*path, "provider"), ref.provider, report):
        provider = PROVIDERS[ref.provider]
        if protocol not in provider.protocols:
            what = f"the provider {ref.provider!r} does not speak {protocol!r}"
            why = f"it speaks {', '.join(provider.protocols)}"
            mend = "set api_format, here or of the model, to one of them or use another provider"
            report.add((*path, "provider"), what, why, mend)
        _check_credential(ref, provider, path, report)
        if ref.api_version is not None:
            check_text((*path, "api_version"), ref.api_version, report)
            if not provider.takes_api_version:
                what = f"the provider {ref.provider!r} takes no API version"
                report.add((*path, "api_version"), what, mend="remove it")
    if ref.chat_path is not None and not is_chat_path(ref.chat_path):
        why = "it takes a path that begins with / and holds visible ASCII only"
        report.add((*path, "chat_path"), "is not a path", why)
    check_extra_headers(ref.extra_headers, (*path, "extra_headers"), report)


def _check_health_path(model: ProviderModel, health_path: str, path: Path, report: Report) -> None:
    if health_path and not is_chat_path(health_path):
        why = "it takes a path that begins with / and holds visible ASCII only"
        report.add(path, "is not a path", why, 'write "" for a backend that is not asked')
    if model.reliability.health_check_path is None:
        why = "nobody is asked without reliability.health_check_path of the model"
        report.add(path, "is out of place", why, "set that or remove this")


def _check_provider_name(path: Path, provider: str, report: Report) -> bool:
    """Return whether the provider is a built-in one."""
    if provider in PROVIDERS:
        return True
    what = f"{report.quote(path)} is not a known provider"
    report.add(path, what, mend=suggestion(provider, PROVIDERS))
    return False


def _check_credential(ref: BackendRef, provider: Provider, path: Path, report: Report) -> None:
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
        check_key(ref.api_key, place, report)
    elif not is_variable(ref.api_key_env or ""):
        mend = "an inline credential goes under api_key"
        report.add(place, "is not the name of an environment variable", mend=mend)


def check_key(key: str, path: Path, report: Report) -> None:
    """A header line can carry the credential."""
    if not is_header_value(key):
        why = "it is empty, begins or ends with a blank, or holds other than visible ASCII"
        report.add(path, "a header line can't carry this credential", why)


def check_extra_headers(headers: Mapping[str, str], path: Path, report: Report) -> None:
    """Each is a header line that may be set on a call, and is given once."""
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


def _resolved(ref: BackendRef, protocol: str, path: Path, report: Report) -> Backend | None:
    if ref.provider not in PROVIDERS:
        return None
    if ref.base_url is not None and ref.endpoint is not None:
        report.add((*path, "endpoint"), "excludes base_url", mend="keep one of the two")
        return None
    place = path
    if ref.base_url is not None or ref.endpoint is not None:
        place = (*path, "endpoint" if ref.base_url is None else "base_url")
    try:
        return resolve_backend(ref, protocol)
    except ValueError as error:
        mend = "" if place != path else "give base_url or endpoint"
        report.add(place, "is not the address of a backend", str(error), mend)
        return None


def _check_http_version(ref: BackendRef, backend: Backend, path: Path, report: Report) -> None:
    if ref.http_version == "auto" and backend.address.scheme != "https":
        report.add(
            (*path, "http_version"),
            "'auto' needs https",
            "the version is agreed upon in the TLS handshake, which clear text has none of",
            'write "2" if the backend speaks HTTP/2 in clear text, else "1.1"',
        )
