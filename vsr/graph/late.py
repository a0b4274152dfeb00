"""Fields that are looked at while their step runs, not before: conditions and expressions."""

from collections.abc import Callable, Sequence

import attrs

from vsr.graph.bind import Fields
from vsr.graph.conditions.condition import Condition as Test
from vsr.graph.env import Bound, Constant
from vsr.graph.scope import Scope
from vsr.graph.value import Inputs

SUBJECT = "it"
"""Name of what a predicate judges."""


@attrs.frozen
class Condition:
    """A condition of the document, ready to be asked."""

    _holds: Callable[[Scope, Inputs], bool]

    def holds(self, scope: Scope, inputs: Inputs) -> bool:
        """Return whether it holds for what `scope` sees now."""
        return self._holds(scope, inputs)


@attrs.frozen
class Predicate:
    """A condition on one value."""

    condition: Condition

    def holds(self, value: object, scope: Scope, inputs: Inputs) -> bool:
        """Return whether it holds for `value`."""
        return self.condition.holds(scope.inner({SUBJECT: value}), inputs)


@attrs.frozen
class Expression:
    """A value that is found when it is asked for."""

    bound: Bound

    def value(self, scope: Scope) -> object:
        """Return what it is now."""
        bound = self.bound
        return bound.value if isinstance(bound, Constant) else bound.evaluate(scope)


def tested(fields: Fields) -> Condition:
    """Return a condition of the registry."""

    def holds(scope: Scope, inputs: Inputs) -> bool:
        test: Test = fields.build(scope)  # type: ignore[assignment]  # the registry's kind
        return test(inputs)

    return Condition(holds)


def all_of(conditions: Sequence[Condition]) -> Condition:
    """Return what holds when all of them do."""
    return Condition(lambda scope, inputs: all(it.holds(scope, inputs) for it in conditions))


def any_of(conditions: Sequence[Condition]) -> Condition:
    """Return what holds when one of them does."""
    return Condition(lambda scope, inputs: any(it.holds(scope, inputs) for it in conditions))


def none_of(condition: Condition) -> Condition:
    """Return what holds when `condition` does not."""
    return Condition(lambda scope, inputs: not condition.holds(scope, inputs))
