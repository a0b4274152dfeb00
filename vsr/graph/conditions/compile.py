"""From authored conditions to ones that can be asked."""

from collections.abc import Mapping, Sequence

import attrs

from vsr.graph.bind import Binder
from vsr.graph.env import Bound, Constant, Env, Path
from vsr.graph.late import SUBJECT, Condition, Predicate, all_of, any_of, none_of, tested
from vsr.registry import Registry

_IT = f"${SUBJECT}"
_NEVER = any_of(())


@attrs.frozen
class ConditionReader:
    """Reads conditions: a mapping with one key, or `all`, `any` and `not` of others."""

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
        if name not in self.registry:
            known = ", ".join(sorted([*self.registry.names(), "all", "any", "not"]))
            self.binder.complain(place, f"is no condition: {name!r}", "", f"known: {known}")
            return _NEVER
        cls = self.registry.get(str(name)).config
        return tested(self.binder.fields(cls, _fields(given, is_predicate), place, env))

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


def _fields(given: object, is_predicate: bool) -> Mapping[str, object]:  # noqa: FBT001  # see above
    """Return a condition's fields; what is no mapping goes to `value`."""
    if is_predicate:
        more = given if isinstance(given, Mapping) else {}
        return {"value": _IT, **more}
    return given if isinstance(given, Mapping) else {"value": given}
