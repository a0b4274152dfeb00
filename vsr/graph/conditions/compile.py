"""From authored conditions to ones that can be asked."""

from collections.abc import Mapping, Sequence
from typing import get_type_hints

import attrs

from vsr.graph.bind import Binder, Fields
from vsr.graph.env import Bound, Constant, Env, Path
from vsr.graph.late import SUBJECT, Condition, Predicate, all_of, any_of, none_of, tested
from vsr.registry import Registry

_IT = f"${SUBJECT}"
_NEVER = any_of(())
_SIGNAL = "signal"


@attrs.frozen
class ConditionReader:
    """Reads conditions: a mapping with one key, or `all`, `any` and `not` of others.

    A rule tree as decisions have it stands for the condition `signal`.
    """

    registry: Registry[object]
    binder: Binder

    def read(self, raw: object, path: Path, env: Env) -> Bound:
        """Return the condition at `path`."""
        return Constant(self._condition(raw, path, env, is_predicate=False), Condition)

    def read_predicate(self, raw: object, path: Path, env: Env) -> Bound:
        """Return the condition on one value at `path`, whose `value` is that value."""
        condition = self._condition(raw, path, env, is_predicate=True)
        return Constant(Predicate(condition), Predicate)

    def _condition(self, raw: object, path: Path, env: Env, *, is_predicate: bool) -> Condition:
        if _is_rule_tree(raw) and _SIGNAL in self.registry:
            return self._whole(self.registry.get(_SIGNAL).config, raw, path, env)
        if not isinstance(raw, Mapping) or len(raw) != 1:
            what, mend = "is no condition", "write a mapping with one key, like {succeeded: $step}"
            self.binder.complain(path, what, "", mend)
            return _NEVER
        [(name, given)] = raw.items()
        place = (*path, name)
        if name in {"all", "any"}:
            parts = self._parts(given, place, env, is_predicate=is_predicate)
            return all_of(parts) if name == "all" else any_of(parts)
        if name == "not":
            return none_of(self._condition(given, place, env, is_predicate=is_predicate))
        return self._registered(str(name), given, place, env, is_predicate=is_predicate)

    def _registered(
        self, name: str, given: object, path: Path, env: Env, *, is_predicate: bool
    ) -> Condition:
        if name not in self.registry:
            known = ", ".join(sorted([*self.registry.names(), "all", "any", "not"]))
            self.binder.complain(path, f"is no condition: {name!r}", "", f"known: {known}")
            return _NEVER
        cls = self.registry.get(name).config
        if getattr(cls, "takes_all", False):
            return self._whole(cls, given, path, env)
        return tested(self.binder.fields(cls, _fields(given, is_predicate), path, env))

    def _whole(self, cls: type, given: object, path: Path, env: Env) -> Condition:
        """Return a condition whose `value` is all that is written."""
        bound = self.binder.bind(given, get_type_hints(cls)["value"], path, env)
        return tested(Fields(cls, {"value": bound}))

    def _parts(
        self, given: object, path: Path, env: Env, *, is_predicate: bool
    ) -> Sequence[Condition]:
        if not isinstance(given, (list, tuple)) or not given:
            self.binder.complain(path, "is no list of conditions", "", "write at least one")
            return ()
        return [
            self._condition(each, (*path, at), env, is_predicate=is_predicate)
            for at, each in enumerate(given)
        ]


def _is_rule_tree(raw: object) -> bool:
    """Return whether a condition is a rule tree as decisions have it."""
    return isinstance(raw, Mapping) and ("operator" in raw or "type" in raw)


def _fields(given: object, is_predicate: bool) -> Mapping[str, object]:  # noqa: FBT001  # see above
    """Return a condition's fields; what is no mapping goes to `value`."""
    if is_predicate:
        more = given if isinstance(given, Mapping) else {}
        return {"value": _IT, **more}
    return given if isinstance(given, Mapping) else {"value": given}
