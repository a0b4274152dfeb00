"""From authored fields to the fields of an extension's configuration class."""

import difflib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Literal, get_args, get_origin, get_type_hints

import attrs

from vsr.config.quantities import parse_duration_s
from vsr.errors import GraphFailed
from vsr.graph.env import (
    Bound,
    Complain,
    Constant,
    Deferred,
    Env,
    Known,
    Path,
    known_of,
    resolve,
)
from vsr.graph.kinds import Fit, Kind, conforms, described, fit, members_of, united
from vsr.graph.scope import Reference, Scope, literal, parse_reference
from vsr.registry import Registry

Reader = Callable[[object, Path, Env], Bound]
"""Reads the fields of one annotation that is not plain data."""

_LISTS = (tuple, list, Sequence)
STEP_KEYS = ("id", "type", "error")
"""What a step reads itself, whatever its type; most read `on_error` too."""
SECONDS = "seconds"
"""Marks a number that is authored as a duration like `250ms`."""
VISIBLE = "visible"
"""Metadata of a field that gets all visible names; authors do not write it."""
SCOPE = "scope"
"""Metadata of a field that sees other names than its step: `(env, earlier fields) -> env`."""
REGISTRY = "registry"
"""Metadata of a field that names an extension, whose own fields stand beside it: of which kind."""


@attrs.frozen
class Fields:
    """The bound fields of one configuration class."""

    cls: type
    bound: Mapping[str, Bound]
    constant: object = None
    """The instance, if it is the same in every run."""

    def build(self, scope: Scope) -> object:
        """Return the instance for one run of its step.

        Raises:
            GraphFailed: a value is not what the field takes.
        """
        if self.constant is not None:
            return self.constant
        values: dict[str, object] = {}
        for name, bound in self.bound.items():
            values[name] = bound.value if isinstance(bound, Constant) else bound.evaluate(scope)
        try:
            return self.cls(**values)
        except (ValueError, TypeError) as error:
            raise GraphFailed(f"a step cannot use what it is given: {error}") from None


@attrs.frozen
class Binder:
    """Binds plain data; what is not plain is left to the readers of its annotation."""

    complain: Complain
    readers: dict[object, Reader] = attrs.field(factory=dict)
    registries: Mapping[str, Registry[object]] = attrs.field(factory=dict)

    def fields(self, cls: type, raw: Mapping[str, object], path: Path, env: Env) -> Fields:
        """Return the bound fields of `cls`; faults are complained of."""
        hints = get_type_hints(cls, include_extras=True)
        known = {key_of(field.name): field for field in attrs.fields(cls) if field.init}
        bound: dict[str, Bound] = {}
        rest = {key: value for key, value in raw.items() if key not in known}
        for key, field in known.items():
            seen = field.metadata[SCOPE](env, bound) if SCOPE in field.metadata else env
            if field.metadata.get(VISIBLE):
                bound[field.name] = Deferred(Scope.visible)
            elif REGISTRY in field.metadata:
                kind_of = field.metadata[REGISTRY]
                place, taken = (*path, key), (*STEP_KEYS, "on_error", *known)
                self.refuse_shadowed(kind_of, raw.get(key), taken, place)
                bound[field.name] = self._extension(kind_of, raw.get(key), rest, place, env)
                rest = {}
            elif key in raw:
                bound[field.name] = self.bind(raw[key], hints[field.name], (*path, key), seen)
            elif field.default is attrs.NOTHING:
                self.complain((*path, key), "is missing", "", "add it")
                bound[field.name] = Constant(None)
        shown = [key for key, field in known.items() if not field.metadata.get(VISIBLE)]
        self.refuse_unknown(rest, shown, path)
        return Fields(cls, bound, self._instance(cls, bound, path))

    def _extension(
        self, kind: str, name: object, raw: Mapping[str, object], path: Path, env: Env
    ) -> Bound:
        """Bind the fields of a named extension, which stand beside its name."""
        registry = self.registries[kind]
        if not isinstance(name, str) or name not in registry:
            known = ", ".join(registry.names())
            self.complain(path, f"is no {registry.kind}: {name!r}", "", f"known: {known}")
            return Constant(None)
        cls = registry.get(name).config
        fields = self.fields(cls, raw, path[:-1], env)
        faults = getattr(cls, "faults", None)
        for fault in () if faults is None else faults(env, fields.bound):
            self.complain(path[:-1], fault, "", "")
        result: Kind = get_type_hints(cls.__call__).get("return", object)
        if fields.constant is not None:
            return Constant(fields.constant, result)
        return Deferred(fields.build, result)

    def refuse_shadowed(self, kind: str, name: object, taken: Sequence[str], path: Path) -> None:
        """Complain of an extension with fields that its step reads itself: they stay unset."""
        registry = self.registries[kind]
        if not isinstance(name, str) or name not in registry:
            return
        for field in attrs.fields(registry.get(name).config):
            if field.init and key_of(field.name) in taken:
                what = f"{registry.kind} {name!r} has a field {field.name!r}, which its step reads"
                self.complain(path, what, "", "rename the field in the extension's class")

    def refuse_unknown(self, raw: Mapping[str, object], known: Sequence[str], path: Path) -> None:
        """Complain of keys that nobody reads."""
        for key in raw:
            if key not in known:
                near = difflib.get_close_matches(str(key), known, n=1)
                mend = (
                    f"did you mean {near[0]!r}?" if near else f"known: {', '.join(sorted(known))}"
                )
                self.complain((*path, key), "is an unknown key", "", mend)

    def _instance(self, cls: type, bound: Mapping[str, Bound], path: Path) -> object:
        if not all(isinstance(each, Constant) for each in bound.values()):
            return None
        values = {name: each.value for name, each in bound.items() if isinstance(each, Constant)}
        try:
            return cls(**values)
        except (ValueError, TypeError) as error:
            self.complain(path, f"cannot be used: {error}", "", "")
            return None

    def bind(self, raw: object, kind: Kind, path: Path, env: Env) -> Bound:
        """Return the bound value of one field."""
        reader = self._reader(kind)
        if reader is not None:
            return reader(raw, path, env)
        if isinstance(raw, str):
            reference = parse_reference(raw)
            if reference is not None:
                return self._refer(raw, kind, path, env)
            raw = literal(raw)
        return self._read(raw, kind, path, env)

    def _reader(self, kind: Kind) -> Reader | None:
        for each in (kind, *members_of(kind)):
            try:
                if each in self.readers:
                    return self.readers[each]
            except TypeError:  # an annotation that cannot be a key is none of theirs
                continue
        return None

    def _refer(self, raw: str, kind: Kind, path: Path, env: Env) -> Bound:
        reference = parse_reference(raw)
        assert reference is not None  # noqa: S101  # the caller looked
        found = resolve(reference, env)
        if isinstance(found, str):
            self.complain(path, found, "", "name an earlier step or a parameter")
            return Constant(None)
        if found.is_constant:
            if conforms(found.value, kind):
                return Constant(_as_wanted(found.value), found.kind)
            return self._read(found.value, kind, path, env)
        answer = fit(found.kind, kind)
        if answer is Fit.NO:
            what = f"{reference} is {described(found.kind)}, and here stands {described(kind)}"
            self.complain(path, what, "", "")
            return Constant(None)
        if answer is Fit.YES:
            evaluate = partial(_found, reference)
            return Deferred(evaluate, found.kind, known=found.known)
        checked = partial(_checked, reference, kind)
        return Deferred(checked, found.kind, is_checked=True, known=found.known)

    def _read(self, raw: object, kind: Kind, path: Path, env: Env) -> Bound:
        """Read what is no reference itself, though there may be some in it."""
        wanted = members_of(kind)
        if raw is None and type(None) in wanted:
            return Constant(None, type(None))
        for each in wanted:
            if each is not type(None) and _may_be(raw, each):
                return self._read_as(raw, each, path, env, is_seconds=_is_seconds(kind))
        if not isinstance(raw, str) and conforms(raw, kind):
            return Constant(raw, kind)
        if _is_seconds(kind) and isinstance(raw, str):
            return self._read_as(raw, float, path, env, is_seconds=True)
        self.complain(path, f"is {raw!r}, and here stands {described(kind)}", "", "")
        return Constant(None)

    def _read_as(
        self, raw: object, kind: Kind, path: Path, env: Env, *, is_seconds: bool = False
    ) -> Bound:
        cls = get_origin(kind) or kind
        if is_seconds and isinstance(raw, str):
            return self._read_duration(raw, path)
        if isinstance(raw, (list, tuple)) and (cls in _LISTS or kind is object):
            item = (get_args(kind) or (object,))[0]
            parts = [self.bind(it, item, (*path, at), env) for at, it in enumerate(raw)]
            return _joined({str(at): it for at, it in enumerate(parts)}, tuple, kind)
        if isinstance(raw, Mapping) and (cls is Mapping or cls is dict or kind is object):
            item = (get_args(kind) or (str, object))[1]
            names = list(raw)
            parts = [self.bind(raw[it], item, (*path, it), env) for it in names]
            named = {str(it): part for it, part in zip(names, parts, strict=True)}
            return _joined(named, lambda values: dict(zip(names, values, strict=True)), kind)
        if isinstance(raw, Mapping) and isinstance(cls, type) and attrs.has(cls):
            fields = self.fields(cls, raw, path, env)
            if fields.constant is not None:
                return Constant(fields.constant, kind)
            return Deferred(
                fields.build, kind, known=_together(fields.bound), parts={**fields.bound}
            )
        return Constant(raw, type(raw) if kind is object else kind)

    def _read_duration(self, raw: str, path: Path) -> Bound:
        try:
            return Constant(parse_duration_s(raw), float)
        except ValueError as error:
            self.complain(path, f"is {raw!r}", str(error), "write a duration like 20s or 250ms")
            return Constant(None)


def key_of(name: str) -> str:
    """Return a field's key in the document: `from_` is written `from`."""
    return name.removesuffix("_")


def _is_seconds(kind: Kind) -> bool:
    return SECONDS in get_args(kind)[1:] or any(
        SECONDS in getattr(each, "__metadata__", ()) for each in get_args(kind)
    )


def _may_be(raw: object, kind: Kind) -> bool:
    """Return whether a literal may be read as `kind`; parts of it are looked at later."""
    cls = get_origin(kind) or kind
    if kind is object:
        return True
    if cls is Literal:
        return raw in get_args(kind) and not isinstance(raw, (list, dict))
    if cls in _LISTS:
        return isinstance(raw, (list, tuple))
    if cls is Mapping or cls is dict:
        return isinstance(raw, Mapping)
    if isinstance(cls, type) and attrs.has(cls) and isinstance(raw, Mapping):
        return True
    return conforms(raw, kind)


def _joined(
    members: Mapping[str, Bound], join: Callable[[Sequence[object]], object], kind: Kind
) -> Bound:
    parts = list(members.values())
    if all(isinstance(part, Constant) for part in parts):
        return Constant(join([part.value for part in parts if isinstance(part, Constant)]), kind)
    if kind is object or get_args(kind) in {(object,), (object, ...)}:
        kind = _tuple_of(united([part.kind for part in parts])) if join is tuple else kind

    def evaluate(scope: Scope) -> object:
        return join([it.value if isinstance(it, Constant) else it.evaluate(scope) for it in parts])

    known = _together(members, most=len(parts))
    return Deferred(evaluate, kind, known=known, parts=members)


def _together(members: Mapping[str, Bound], most: int | None = None) -> Known:
    """Return what is known of a value that is made of `members`."""
    return Known(all(known_of(each).is_given for each in members.values()), most=most)


def _tuple_of(kind: Kind) -> Kind:
    return tuple[kind, ...]  # type: ignore[valid-type]  # a type that is only known now


def kind_of(bound: Bound) -> Kind:
    """Return the type of a bound value, as exactly as it is known."""
    return _kind_of_value(bound.value) if isinstance(bound, Constant) else bound.kind


def _kind_of_value(value: object) -> Kind:
    if isinstance(value, (tuple, list)):
        return _tuple_of(united([_kind_of_value(each) for each in value]) if value else object)
    return Mapping[str, object] if isinstance(value, Mapping) else type(value)


def _found(reference: Reference, scope: Scope) -> object:
    return _as_wanted(reference.value(scope))


def _checked(reference: Reference, kind: Kind, scope: Scope) -> object:
    """Return a reference's value.

    Raises:
        GraphFailed: it is not what the field takes; the value itself is not shown.
    """
    value = reference.value(scope)
    if not conforms(value, kind):
        found = described(type(value))
        raise GraphFailed(f"{reference} is {found}, and the step takes {described(kind)}")
    return _as_wanted(value)


def _as_wanted(value: object) -> object:
    """Return a list as the tuple that fields hold; all else as it is."""
    return tuple(value) if isinstance(value, list) else value
