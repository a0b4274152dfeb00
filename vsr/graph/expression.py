"""RE2 expressions that authors write into fields of extensions."""

import attrs
import re2

from vsr.decision.signals.pattern_set import PatternError, fault_of


def check_expression(
    _owner: object,
    field: "attrs.Attribute[str | None]",
    expression: str | None,
    *,
    groups: int | None,
) -> None:
    """Check one field, as an attrs validator does; None is the field left out.

    Args:
        groups: how many groups it must have; None: any number.

    Raises:
        PatternError: RE2 refuses the expression, or it has another number of groups.
    """
    if expression is None:
        return
    fault = fault_of(expression)
    if fault is not None:
        raise PatternError(f"{field.name} is not valid RE2: {fault}")
    found = re2.compile(expression).groups
    if groups is not None and found != groups:
        raise PatternError(f"{field.name} has {found} groups and needs {groups}")
