"""Whether this version can serve a valid document, in a mode: what it would have to ignore."""

import functools
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum

import msgspec

from vsr.config.backend import wire_protocols
from vsr.config.checks import is_variable
from vsr.config.compile.tracing import span_exporter_of, tracing_of
from vsr.config.document.decision_plugin import DecisionPlugin
from vsr.config.document.objects import DocumentObject, fields_of
from vsr.config.document.root import Document
from vsr.config.document.routing import Routing
from vsr.config.management import check_management
from vsr.config.names import recipe_routings
from vsr.config.not_served import (
    NOT_SERVED_KEYS,
    NOT_SERVED_VALUES,
    STANDALONE_ONLY,
    STANDALONE_ONLY_VALUES,
)
from vsr.config.position import Path, Value
from vsr.config.providers import RESPONSES
from vsr.config.report import Report
from vsr.config.validate.backends import check_key
from vsr.config.validate.unlike import check_alike
from vsr.telemetry.spans import MEND_MISSING_EXTRA, is_exporter_installed


class Gateway(StrEnum):
    """How clients reach the Router."""

    STANDALONE = "standalone"
    EXTPROC = "extproc"
    """Through an Envoy that asks it."""


def check_serving(
    document: Document, environ: Mapping[str, str], report: Report, *, gateway: Gateway
) -> None:
    """Report everything in a valid document that keeps this version from serving it.

    Args:
        document: found valid.
        environ: must hold the credentials that the document names.
        report: gets the problems; its lines say what was written.
        gateway: the mode it is to be served in.
    """
    for owner, written, path in _written_objects(document, report.lines.root, ()):
        plan = _plan_of(type(owner))
        for key in filter(plan.is_watched, written):
            place = (*path, key)
            if gateway is Gateway.EXTPROC and plan.is_standalone_only(owner, key):
                what = "is honored only in standalone mode"
                report.add(place, what, mend="serve with --gateway standalone or remove it")
            _check_key(owner, key, plan, place, report)
    _check_backends(document, environ, report)
    if gateway is Gateway.STANDALONE:
        _check_trust(document, report)
    else:
        check_alike(document, report)
    _check_tracing(document, report)
    check_management(document, report)
    if not document.providers.models:
        _check_references(document, report)


class _Plan(msgspec.Struct, frozen=True):
    """What to look for in the objects of one class."""

    keys: frozenset[str]
    standalone_only: frozenset[str]
    words: Mapping[str, frozenset[str]]
    """By key."""
    standalone_words: Mapping[str, frozenset[str]]
    """By key."""

    def is_standalone_only(self, owner: DocumentObject, key: str) -> bool:
        """Return whether a key, or the word that `owner` has for it, needs standalone mode."""
        words = self.standalone_words.get(key, ())
        return key in self.standalone_only or (
            bool(words) and str(fields_of(type(owner))[key].of(owner)) in words
        )

    def is_watched(self, key: str) -> bool:
        """Return whether some table has the key."""
        tables = self.keys, self.words, self.standalone_only, self.standalone_words
        return any(key in table for table in tables)


@functools.cache
def _plan_of(cls: type[DocumentObject]) -> _Plan:
    # The top-level profile is a profile like any other.
    name = "RecipeRouting" if cls is Routing else cls.__name__
    keys = fields_of(cls)
    return _Plan(
        keys=NOT_SERVED_KEYS.get(name, frozenset()),
        standalone_only=STANDALONE_ONLY.get(name, frozenset()),
        words=_words_of(name, keys, NOT_SERVED_VALUES),
        standalone_words=_words_of(name, keys, STANDALONE_ONLY_VALUES),
    )


def _words_of(
    cls: str, keys: Iterable[str], table: Mapping[str, frozenset[str]]
) -> Mapping[str, frozenset[str]]:
    return {key: table[f"{cls}.{key}"] for key in keys if f"{cls}.{key}" in table}


def _written_objects(
    value: object, written: Value, path: Path
) -> Iterator[tuple[DocumentObject, dict[str, Value], Path]]:
    """Return every object that was written, with what was written and where, outer before inner."""
    if isinstance(written, dict) and isinstance(value, DocumentObject):
        yield value, written, path
    for key, item, inner in _parts(value, written):
        if isinstance(inner, dict | list):
            yield from _written_objects(item, inner, (*path, key))


def _parts(value: object, written: Value) -> Iterator[tuple[str | int, object, Value]]:
    """Return what lies inside of `value`, by its key, with what was written of it."""
    if isinstance(written, list) and isinstance(value, tuple):
        yield from zip(range(len(value)), value, written, strict=False)
    elif isinstance(written, dict) and isinstance(value, DocumentObject):
        fields = fields_of(type(value))
        for key, inner in written.items():
            if key in fields:
                yield key, fields[key].of(value), inner
    elif isinstance(written, dict) and isinstance(value, Mapping):
        for key, item in value.items():
            if key in written:
                yield key, item, written[key]


def _check_key(owner: DocumentObject, key: str, plan: _Plan, path: Path, report: Report) -> None:
    field = fields_of(type(owner))[key]
    value = field.of(owner)
    word = str(value).lower()
    if key in plan.keys and not _is_idle(value, field.default):
        report.add(path, "is not served by this version", mend="remove it")
    elif word in plan.words.get(key, ()) and not _is_switched_off(owner):
        mend = "write true or remove it" if isinstance(value, bool) else "use another or remove it"
        report.add(path, f"{word!r} is not served by this version", mend=mend)


def _is_switched_off(owner: DocumentObject) -> bool:
    return isinstance(owner, DecisionPlugin) and _is_idle(owner.configuration, None)


def _is_idle(value: object, default: object) -> bool:
    """Return whether a written value changes nothing, so that ignoring it is right."""
    if value is None or value in ((), {}, False):
        return True
    if not isinstance(value, DocumentObject):
        return value == default
    fields = fields_of(type(value))
    if "enabled" in fields:
        return not fields["enabled"].of(value)
    return all(_is_idle(field.of(value), field.default) for field in fields.values())


def _check_backends(document: Document, environ: Mapping[str, str], report: Report) -> None:
    for at, model in enumerate(document.providers.models):
        path: Path = ("providers", "models", at)
        if not model.backend_refs and document.listeners == ():
            why = "nobody could answer for the model"
            report.add((*path, "backend_refs"), "is missing or empty", why, "add a backend")
        for index, (ref, protocol) in enumerate(
            zip(model.backend_refs, wire_protocols(model), strict=True)
        ):
            if protocol == RESPONSES and ref.api_format is None and model.api_format is None:
                what = f"speaks {RESPONSES!r}, which is not served by this version"
                mend = "set api_format to another that the provider speaks"
                place = (*path, "backend_refs", index, "provider")
                report.add(place, what, "it is the provider's first", mend)
            variable = ref.api_key_env
            place = (*path, "backend_refs", index, "api_key_env")
            if variable is None or ref.api_key is not None or not is_variable(variable):
                continue
            if not environ.get(variable):
                what = f"the environment variable {report.quote(place)} is not set"
                why = "the backend's credential comes from it"
                report.add(place, what, why, "set it before loading")
            else:
                check_key(environ[variable], place, report)


def _check_trust(document: Document, report: Report) -> None:
    """Users' keys are taken from headers, so somebody must be trusted to set them."""
    authz = document.global_.services.authz
    listeners = document.listeners or ()
    if authz is None or not authz.providers:
        return
    if any(each.identity is not None and each.identity.trust_headers for each in listeners):
        return
    why = "no listener trusts what an authenticator in front of it says"
    mend = "set identity.trust_headers on a listener, or serve with --gateway extproc"
    report.add(("global", "services", "authz", "providers"), "is of no use here", why, mend)


def _check_tracing(document: Document, report: Report) -> None:
    tracing = tracing_of(document)
    if tracing is not None and not is_exporter_installed(span_exporter_of(tracing)):
        path: Path = ("global", "services", "observability", "tracing")
        why = "spans are exported by packages that are not installed"
        report.add(path, "can't be served here", why, MEND_MISSING_EXTRA)


def _check_references(document: Document, report: Report) -> None:
    """Without any provider model, names of models have nobody behind them."""
    names: list[tuple[Path, str]] = []
    if document.providers.defaults.model is not None:
        names.append((("providers", "defaults", "model"), document.providers.defaults.model))
    for path, routing in recipe_routings(document):
        for at, decision in enumerate(routing.decisions):
            place = (*path, "decisions", at, "modelRefs")
            names += [((*place, i, "model"), ref.model) for i, ref in enumerate(decision.modelRefs)]
    for place, name in names:
        if name:
            what = f"{report.quote(place)} is not the name of any of providers.models"
            report.add(place, what, mend="add it there")
