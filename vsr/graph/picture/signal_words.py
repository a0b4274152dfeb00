"""Conditions on signals in words, as short as a picture wants them."""

from collections.abc import Callable, Mapping, Sequence

from vsr.resources.program import And, Leaf, Not, Rule, RuleTree

_JOINED = {"all": " and ", "any": " or "}
_OPERATORS = {"AND": " and ", "OR": " or "}


def signal_words(condition: object, plain: Callable[[object], str]) -> str | None:
    """Return an authored condition in words; None unless it is one on signals, or joins some.

    Args:
        condition: as authored, faulty or not.
        plain: returns the words of other values.
    """
    if not isinstance(condition, Mapping):
        return None
    if "signal" in condition and len(condition) == 1:
        return f"signal {_tree(condition['signal'])}"
    if "operator" in condition or "type" in condition:
        return f"signal {_tree(condition)}"
    if "not" in condition:
        inner = signal_words(condition["not"], plain)
        return None if inner is None else f"not {inner}"
    for name, sign in _JOINED.items():
        parts = condition.get(name)
        if isinstance(parts, (list, tuple)):
            words = [signal_words(each, plain) for each in parts]
            if any(words):
                told = [word or plain(each) for word, each in zip(words, parts, strict=True)]
                return sign.join(map(_bracketed, told))
    return None


def tree_words(tree: RuleTree) -> str:
    """Return a compiled rule tree in the same words."""
    unknown = "" if tree.on_unknown is None else f" (unknown: {tree.on_unknown})"
    return f"{_rule(tree.rule)}{unknown}"


def _tree(written: object) -> str:
    if not isinstance(written, Mapping):
        return str(written)
    unknown = written.get("on_unknown")
    return f"{_node(written)}{f' (unknown: {unknown})' if unknown else ''}"


def _node(written: object) -> str:
    if not isinstance(written, Mapping):
        return str(written)
    conditions = written.get("conditions")
    if not isinstance(conditions, (list, tuple)):
        return f"{written.get('type', '?')}:{written.get('name', '?')}"
    return _joined(str(written.get("operator", "?")).upper(), [_node(each) for each in conditions])


def _rule(rule: Rule) -> str:
    match rule:
        case Leaf():
            return f"{rule.type}:{rule.name}"
        case Not():
            return _joined("NOT", [_rule(rule.condition)])
        case _:
            operator = "AND" if isinstance(rule, And) else "OR"
            return _joined(operator, [_rule(each) for each in rule.conditions])


def _joined(operator: str, parts: Sequence[str]) -> str:
    inner = [_bracketed(part) for part in parts]
    if operator == "NOT":
        return " ".join(("not", *inner))
    if not inner:
        return "anything" if operator == "AND" else "nothing"
    return _OPERATORS.get(operator, f" {operator} ").join(inner)


def _bracketed(words: str) -> str:
    return f"({words})" if " or " in words or " and " in words else words
