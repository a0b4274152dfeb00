"""Prompt templates in Jinja, checked when they are loaded and bounded when they run.

Importing this loads Jinja, which takes longer than all else of a graph; see docs/adr/0018.
"""

import functools
from collections.abc import Collection, Mapping
from types import TracebackType

from jinja2 import StrictUndefined, Template, TemplateRuntimeError, TemplateSyntaxError, meta, nodes
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from vsr.graph.transform.prompt_filters import (
    AUTHORS_FILTERS,
    METER,
    OUR_FILTERS,
    TESTS,
    meter_of,
    write,
)
from vsr.graph.transform.prompt_meter import (
    MAX_OUTPUT_CHARACTERS,
    Meter,
    PromptFault,
    as_number,
)
from vsr.graph.transform.prompt_syntax import add_measures, check_syntax, refuse
from vsr.graph.transform.template_refused import TemplateRefused

MAX_TEMPLATE_CHARACTERS = 65536

_FAULTS = (TypeError, ValueError, ArithmeticError, LookupError, AttributeError, RecursionError)


class _Environment(ImmutableSandboxedEnvironment):
    """Lets a template calculate with numbers, join texts, and call nothing."""

    intercepted_binops = frozenset({"+", "-", "*", "/", "//", "%"})

    def call_binop(self, context: Context, operator: str, left: object, right: object) -> object:
        if operator == "+" and isinstance(left, str) and isinstance(right, str):
            meter_of(context).spend_text(len(left) + len(right))
            return left + right
        numbers = as_number(left), as_number(right)
        return as_number(self.binop_table[operator](*numbers))


@functools.cache
def _environment() -> _Environment:
    # Blocks leave no lines behind, as authors of chat templates are used to.
    environment = _Environment(
        undefined=StrictUndefined,
        finalize=write,
        trim_blocks=True,
        lstrip_blocks=True,
        optimized=False,
        cache_size=0,
    )
    environment.globals.clear()
    environment.filters = {**AUTHORS_FILTERS, **OUR_FILTERS}
    environment.tests = dict(TESTS)
    return environment


@functools.lru_cache(maxsize=4096)
def compile_prompt(source: str) -> Template:
    """Return the template; it is kept, since compiling takes far longer than running.

    Only the document's own texts get here; more than are kept would be compiled per request.

    Raises:
        TemplateRefused: it cannot be used; the message says in which line and why.
    """
    tree = _parsed(source)
    try:
        return _environment().from_string(tree)
    except TemplateSyntaxError as error:
        raise refuse(error.lineno, str(error.message)) from None
    except (SyntaxError, RecursionError, MemoryError):
        raise TemplateRefused("the template is nested too deep") from None


def check_prompt(source: str, names: Collection[str]) -> None:
    """Check a template without running it; `names` are those that are visible to it.

    Raises:
        TemplateRefused: it cannot be used, or reads a name that is not there.
    """
    compile_prompt(source)
    tree = _parsed(source)
    unknown = meta.find_undeclared_variables(tree) - set(names)
    for name in tree.find_all(nodes.Name):
        if name.ctx == "load" and name.name in unknown:
            known = ", ".join(sorted(names)) or "none"
            raise refuse(name.lineno, f"unknown name {name.name!r}; known are {known}")


def render_prompt(source: str, values: Mapping[str, object]) -> str:
    """Return what the template makes of `values`.

    Raises:
        TemplateRefused: as `compile_prompt`; or it does what its values do not allow, or too much.
            The message has the line, and nothing of the values.
    """
    template = compile_prompt(source)
    context = template.new_context({**values, METER: Meter()})
    try:
        return _collected(template, context)
    except PromptFault as fault:
        what = str(fault)
        line = _line_of(template, fault.__traceback__)
    except TemplateRuntimeError as error:
        what = "a value is read that does not exist, or that no template may read"
        line = _line_of(template, error.__traceback__)
    except _FAULTS as error:
        what = "its values do not fit what is done with them"
        line = _line_of(template, error.__traceback__)
    raise refuse(line, what)


def _parsed(source: str) -> nodes.Template:
    if len(source) > MAX_TEMPLATE_CHARACTERS:
        raise TemplateRefused(f"the template is longer than {MAX_TEMPLATE_CHARACTERS} characters")
    try:
        tree = _environment().parse(source)
    except TemplateSyntaxError as error:
        raise refuse(error.lineno, str(error.message)) from None
    except RecursionError:
        raise TemplateRefused("the template is nested too deep") from None
    except ValueError:
        raise TemplateRefused("the template has a number that is too large") from None
    check_syntax(tree)
    add_measures(tree)
    return tree


def _collected(template: Template, context: Context) -> str:
    parts, size = [], 0
    for part in template.root_render_func(context):
        size += len(part)
        if size > MAX_OUTPUT_CHARACTERS:
            what = f"the prompt becomes longer than {MAX_OUTPUT_CHARACTERS} characters"
            raise PromptFault(what)
        parts.append(part)
    return "".join(parts)


def _line_of(template: Template, traceback: TracebackType | None) -> int:
    """Return the line of the template that was running."""
    line = 1
    while traceback is not None:
        if traceback.tb_frame.f_globals.get("__jinja_template__") is template:
            line = template.get_corresponding_lineno(traceback.tb_lineno)
        traceback = traceback.tb_next
    return line
