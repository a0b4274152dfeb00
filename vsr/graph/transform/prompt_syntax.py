"""What of Jinja prompt templates may use, and the measuring points put into them."""

from collections.abc import Iterator, Sequence

from jinja2 import nodes

from vsr.graph.transform.prompt_filters import AUTHORS_FILTERS, TESTS
from vsr.graph.transform.template_refused import TemplateRefused

_ALLOWED: tuple[type[nodes.Node], ...] = (
    *(nodes.Template, nodes.Output, nodes.TemplateData, nodes.For, nodes.If, nodes.Assign),
    *(nodes.Name, nodes.Const, nodes.List, nodes.Tuple, nodes.Dict, nodes.Pair, nodes.Keyword),
    *(nodes.Getattr, nodes.Getitem, nodes.Slice, nodes.Filter, nodes.Test, nodes.Call),
    *(nodes.Compare, nodes.Operand, nodes.And, nodes.Or, nodes.Not, nodes.CondExpr),
    *(nodes.Concat, nodes.Add, nodes.Sub, nodes.Mul, nodes.Div, nodes.FloorDiv, nodes.Mod),
    *(nodes.Neg, nodes.Pos),
)
_RESERVED = ("loop", "range")
_INTERNAL = ("self", "super", "caller", "varargs", "kwargs")
_CONSTANTS = (nodes.Const, nodes.List, nodes.Tuple, nodes.Dict, nodes.Pair, nodes.Neg)


def refuse(line: int, what: str) -> TemplateRefused:
    """Return the refusal of what stands in `line`, counted from 1."""
    return TemplateRefused(f"template line {line}: {what}")


def check_syntax(template: nodes.Template) -> None:
    """Refuse what could run long or reach out of the template.

    Raises:
        TemplateRefused: with the line.
    """
    for node in _all(template):
        if not isinstance(node, _ALLOWED):
            name = type(node).__name__.lower()
            raise refuse(node.lineno, f"{name!r} is not supported in prompts")
        what = _fault(node)
        if what is not None:
            raise refuse(node.lineno, what)


def _fault(node: nodes.Node) -> str | None:
    if isinstance(node, nodes.Call):
        return _fault_of_call(node)
    if isinstance(node, (nodes.Filter, nodes.Test)):
        return _fault_of_use(node)
    if isinstance(node, nodes.For) and node.recursive:
        return "recursive loops are not supported in prompts"
    if isinstance(node, nodes.Name):
        return _fault_of_name(node)
    is_literal = isinstance(node, (nodes.List, nodes.Dict, nodes.Tuple))
    # Lists of lists of variables would grow twofold with every line.
    if is_literal and not all(isinstance(each, _CONSTANTS) for each in _parts_of(node)):
        return "lists and mappings that are written out hold constants only"
    return None


def _fault_of_name(node: nodes.Name) -> str | None:
    if node.name in _INTERNAL:
        return f"{node.name!r} is not supported in prompts"
    if node.ctx == "store" and node.name in _RESERVED:
        return f"{node.name!r} cannot be assigned"
    return None


def _parts_of(literal: nodes.Node) -> Iterator[nodes.Node]:
    """Return what is in a list; what a tuple takes apart is none of it."""
    if not (isinstance(literal, nodes.Tuple) and literal.ctx == "store"):
        yield from literal.find_all(nodes.Node)


def _fault_of_use(node: nodes.Filter | nodes.Test) -> str | None:
    kind, known = (
        ("filter", tuple(sorted(AUTHORS_FILTERS)))
        if isinstance(node, nodes.Filter)
        else ("test", tuple(sorted(TESTS)))
    )
    if node.name not in known:
        return f"unknown {kind} {node.name!r}; known are {', '.join(known)}"
    if node.dyn_args is not None or node.dyn_kwargs is not None:
        return "'*' is not supported in prompts"
    return None


def _fault_of_call(call: nodes.Call) -> str | None:
    if not isinstance(call.node, nodes.Name) or call.node.name != "range":
        return "only 'range' can be called; use filters"
    if call.kwargs or call.dyn_args or call.dyn_kwargs or not 1 <= len(call.args) <= 3:  # noqa: PLR2004
        return "'range' takes 1 to 3 numbers"
    return None


def add_measures(template: nodes.Template) -> None:
    """Put our filters where a template goes through something, in place; see `prompt_filters`."""
    for node in list(_all(template)):
        if isinstance(node, nodes.For):
            parts = node.body if node.test is None else [*node.body, node.test]
            weight = 1 + sum(1 for part in parts for _ in _all(part))
            node.iter = _filter("_loop", node.iter, [nodes.Const(weight)])
        elif isinstance(node, nodes.Compare):
            node.expr = _filter("_weigh", node.expr)
            for operand in node.ops:
                operand.expr = _filter("_weigh", operand.expr)
        elif isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Slice):
            node.node = _filter("_weigh", node.node)
    _replace(template)


def _replace(node: nodes.Node) -> None:
    """Replace what is a filter of ours as a whole, from the inside out."""
    for name, value in list(node.iter_fields()):
        if isinstance(value, list):
            value[:] = [_replaced(each) for each in value]
        elif isinstance(value, nodes.Node):
            setattr(node, name, _replaced(value))


def _replaced(value: object) -> object:
    if not isinstance(value, nodes.Node):
        return value
    _replace(value)
    if isinstance(value, nodes.Concat):
        return _filter("_concat", value.nodes[0], value.nodes[1:])
    if isinstance(value, nodes.Call):
        return _filter("_range", value.args[0], value.args[1:])
    return value


def _filter(name: str, value: nodes.Node, arguments: Sequence[nodes.Node] = ()) -> nodes.Filter:
    return nodes.Filter(value, name, list(arguments), [], None, None, lineno=value.lineno)


def _all(node: nodes.Node) -> Iterator[nodes.Node]:
    yield node
    yield from node.find_all(nodes.Node)
