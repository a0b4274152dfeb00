"""Transformer `prompt`: what templates write, what they may not do, and that they are bounded."""

import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes.graph import source_of
from tests.graph.remom_replies import INPUTS, reply
from vsr.engine.shipped import BUILTIN
from vsr.errors import GraphFailed
from vsr.graph.graph import GraphCompiler
from vsr.graph.transform.prompt import WritePrompt, check_template
from vsr.graph.transform.prompt_meter import MAX_OUTPUT_CHARACTERS, MAX_WORK
from vsr.graph.transform.template_refused import TemplateRefused
from vsr.graph.value import BranchOutcome, Failure, ModelRef, Prompt
from vsr.resources.graph import ParamSpec, ParamType

VALUES: Mapping[str, object] = {
    "panel": [
        BranchOutcome(0, reply("one"), rank=0),
        BranchOutcome(1, failure=Failure("down", "graph_failed"), rank=1),
        BranchOutcome(2, reply("three", model="c"), rank=2),
    ],
    "question": "What secret is it?",
    "count": 3,
    "facts": {"k": [1, 2]},
    "nothing": None,
    "digits": "%9999999999d",
    "long": "x" * 1_000_000,
}


def _write(template: str, values: Mapping[str, object] = VALUES) -> str:
    return WritePrompt(template, values=values)(INPUTS).text


@pytest.mark.parametrize("place", ["append", "replace_last", "fresh"])
def test_prompt_goes_where_the_author_says(
    place: Literal["append", "replace_last", "fresh"],
) -> None:
    """The text is the template's, filled in; nothing is escaped."""
    step = WritePrompt("<{{ a }}> & {{ n }}", place=place, values={"a": "'<b>'", "n": 1.5})

    assert step(INPUTS) == Prompt("<'<b>'> & 1.5", place)


@pytest.mark.parametrize(
    ("template", "wanted"),
    [
        (
            "{% for r in panel if r.value %}\n{{ loop.index }} {{ r.value.content }}\n{% endfor %}",
            "1 one\n2 three\n",
        ),
        ("{% for i in range(1, 8, 3) %}{{ i }}{{ ',' if not loop.last }}{% endfor %}", "1,4,7"),
        ("{% for x in [] %}{{ x }}{% else %}none{% endfor %}", "none"),
        ("{% for k, v in facts|items %}{{ k }}={{ v|join('+') }}{% endfor %}", "k=1+2"),
        ("  {# no #}{% if count > 2 and question %}\nyes{% endif %}\n", "yes"),
        ("{% set n = count * 2 + 1 %}{{ n // 2 }} {{ n % 2 }} {{ -n }} {{ n / 2 }}", "3 1 -7 3.5"),
        ("{{ question[:4] ~ '-' ~ count }}{{ 'a' + 'b' }}", "What-3ab"),
        ("{{ panel|map(attribute='value.model')|first }}{{ panel|length }}", "a3"),
        ("{{ (panel|last).value.model }} {{ panel.1.failure.message }}", "c down"),
        ("{{ nothing|default('-') }}{{ panel.7|d('!') }}{{ ''|default('e', true) }}", "-!e"),
        ("{{ facts|tojson }} {{ panel.0.value.usage|tojson }}", '{"k":[1,2]} null'),
        ("{{ ' a b '|trim|title }} {{ 'Ab'|upper|lower|capitalize }}", "A B Ab"),
        ("{{ 'a-b'|replace('-', '--') }} {{ 'a\nb'|indent(2, true) }}", "a--b   a\n  b"),
        ("{{ question|truncate(7) }} {{ 'short'|truncate }}", "What... short"),
        ("{{ count is odd }}{{ 4 is even and 6 is divisibleby(3) }}", "TrueTrue"),
        ("{{ panel.9 is defined }}{{ facts is mapping }}", "FalseTrue"),
        ("{{ 'x' in ['x', 'y'] }} {{ 1 < count <= 3 }} {{ not count == 3 }}", "True True False"),
    ],
)
def test_template_writes_what_jinja_would(template: str, wanted: str) -> None:
    """Blocks leave no lines behind, as in chat templates."""
    assert _write(template) == wanted


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{{ question", "line 1: unexpected end of template"),
        ("\n{% if %}{% endif %}", "line 2: Expected an expression"),
        (
            "a\n{{ qestion }}",
            "line 2: unknown name 'qestion'; known are count, digits",
        ),
        ("{% for r in panel %}{% endfor %}\n{{ r }}", "line 2: unknown name 'r'"),
        ("{{ range }}", "unknown name 'range'"),
        ("{{ count ** 9 }}", "'pow' is not supported in prompts"),
        ("{% macro f() %}{% endmacro %}", "'macro' is not supported"),
        ("{% include 'x' %}", "'include' is not supported"),
        ("{% set x %}y{% endset %}", "'assignblock' is not supported"),
        ("{% set x.y = 1 %}", "'nsref' is not supported"),
        ("{% filter upper %}x{% endfilter %}", "'filterblock' is not supported"),
        ("{% for r in panel recursive %}{% endfor %}", "recursive loops are not supported"),
        ("{% set range = question %}", "'range' cannot be assigned"),
        ("{{ self }}", "'self' is not supported"),
        ("{{ question.upper() }}", "only 'range' can be called; use filters"),
        ("{{ range() }}", "'range' takes 1 to 3 numbers"),
        ("{{ range(*facts.k) }}", "'range' takes 1 to 3 numbers"),
        ("{{ question|center(9) }}", "unknown filter 'center'; known are capitalize, count"),
        ("{{ question|join(*facts) }}", "'*' is not supported"),
        ("{{ count is callable }}", "unknown test 'callable'; known are boolean"),
        ("{% set x = [panel] %}", "hold constants only"),
        ("{% set x = {'a': [panel]} %}", "hold constants only"),
        ("{% set x = (panel, 1) %}", "hold constants only"),
        ("{{ " + "9" * 5000 + " }}", "the template has a number that is too large"),
        ("{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}", "the template is nested too deep"),
        ("{% if 1 %}" * 200 + "{% endif %}" * 200, "the template is nested too deep"),
        ("x" * 65537, "longer than 65536 characters"),
    ],
)
def test_template_is_refused_when_it_is_loaded(template: str, message: str) -> None:
    """The message has the line and what is wrong; nothing runs."""
    with pytest.raises(TemplateRefused) as raised:
        check_template(template, VALUES.keys())

    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("template", "is_refused"),
    [("$said.content", True), ("$params.brief", False), ("{{ said.content }}", False)],
)
def test_template_is_never_what_a_model_said(template: str, *, is_refused: bool) -> None:
    """It would be compiled for every request, and could ask for anything that templates can."""
    source = source_of(
        [
            {"id": "said", "type": "call", "model": "a"},
            {"id": "asked", "type": "transform", "transformer": "prompt", "template": template},
            {"id": "answer", "type": "call", "model": "a", "request": "$asked"},
            {"type": "respond", "from": "$answer"},
        ],
        {"brief": ParamSpec(ParamType.STRING)},
    )
    found: list[str] = []
    compiler = GraphCompiler(
        BUILTIN.shipped_registries(), lambda _: None, lambda ref: ModelRef(ref.model, ref.model)
    )
    compiler.open(source, lambda _path, *text: found.append(text[0]))

    wanted = "template comes from a result: a model's words are values, never a template"
    assert found == ([wanted] if is_refused else [])


def test_template_of_known_names_is_accepted() -> None:
    """Its own variables, those of loops, and a name that it only asks for are known."""
    check_template(
        "{% set n = count %}{% for r in panel %}{{ loop.index + n }}{{ r.value }}{% endfor %}",
        VALUES.keys(),
    )


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("\n\n{{ panel.1.value.content }}", "line 3: a value is read that does not exist"),
        ("{{ question.secret }}", "a value is read that does not exist"),
        ("{{ facts[question] }}", "a value is read that does not exist"),
        ("{{ question.__class__ }}", "that no template may read"),
        ("{{ panel[0]['__class__'] }}", "that no template may read"),
        ("{{ panel|map(attribute='__class__')|join }}", "that no template may read"),
        ("\n{{ nothing }}", "line 2: a value that is nothing cannot be written; use the filter"),
        ("{{ panel }}", "only texts and numbers can be written; use the filter 'tojson'"),
        ("{{ question.upper }}", "only texts and numbers can be written"),
        ("{{ question.upper|tojson }}", "a value cannot be written as JSON"),
        ("{% for c in question %}{% endfor %}", "only lists can be gone through"),
        ("{{ question * 9 }}", "only numbers can be calculated with"),
        ("{{ digits % count }}", "only numbers can be calculated with"),
        ("{{ digits is odd }}", "only numbers can be calculated with"),
        ("{{ digits is divisibleby(count) }}", "only numbers can be calculated with"),
        ("{{ facts.k + facts.k }}", "only numbers can be calculated with"),
        ("{{ count / 0 }}", "its values do not fit what is done with them"),
        ("{{ count < question }}", "its values do not fit what is done with them"),
        ("{{ question|truncate(1) }}", "'truncate' takes a length that has room for its end"),
        ("{{ question|indent(1000000000) }}", "'indent' takes 0 to 100 places"),
        ("{{ panel|upper }}", "a filter of texts is used on something else"),
        ("{{ count|length }}", "only texts and lists have a length"),
        ("{{ question|items }}", "'items' takes a mapping"),
        ("{{ range(1, 9, 0)|join }}", "'range' takes integers"),
        ("{{ []|first }}", "a value is read that does not exist"),
        ("{{ []|last }}", "a value is read that does not exist"),
        ("{{ 'x' ~ panel.9 }}", "a value is read that does not exist"),
    ],
)
def test_template_that_its_values_do_not_allow_fails(template: str, message: str) -> None:
    """The client reads which template and line it was, and nothing of the values."""
    step = WritePrompt(template, name="brief", values=VALUES)

    with pytest.raises(GraphFailed) as raised:
        step(INPUTS)

    assert message in str(raised.value)
    assert str(raised.value).startswith("prompt 'brief': template line ")
    assert "secret" not in str(raised.value)


_WORK = f"it takes more than {MAX_WORK} steps"
_LENGTH = f"longer than {MAX_OUTPUT_CHARACTERS} characters"


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{% for i in range(10000000000) %}{% endfor %}", _WORK),
        ("{% for i in range(999) %}{% for j in range(999) %}{% endfor %}{% endfor %}", _WORK),
        ("{% for i in range(9999) %}" + "{{ i }}" * 99 + "{% endfor %}", _WORK),
        ("{% for i in range(9999) if i < 0 %}{% endfor %}" * 50, _WORK),
        ("{% for i in range(10000000000) %}{{ loop.length }}{% endfor %}", _WORK),
        ("{% for i in range(9) %}{{ long }}{% endfor %}", _LENGTH),
        ("{% for i in range(9000) %}" + "x" * 999 + "{% endfor %}", _LENGTH),
        ("{% set x = long %}" + "{% set x = x ~ x %}" * 40, _LENGTH),
        ("{% set x = 'ab' %}" + "{% set x = x + x %}" * 40, _LENGTH),
        ("{% set x = 9 %}" + "{% set x = x * x %}" * 40, "a number becomes too large"),
        ("{{ long|replace('x', 'xxxxx') }}", _LENGTH),
        ("{{ long|replace('', long) }}", _LENGTH),
        ("{{ range(9)|join(long) }}", _LENGTH),
        ("{{ range(10000000000)|join }}", _WORK),
        ("{{ 'a' in range(10000000000) }}", _LENGTH),
        ("{% for i in range(9999) %}{% if long == long[1:] %}{% endif %}{% endfor %}", _WORK),
        ("{% for i in range(9999) %}{% set x = long|upper %}{% endfor %}", _WORK),
        ("{% for i in range(9999) %}{% set x = long[1:] %}{% endfor %}", _WORK),
        ("{% for i in range(9999) %}{% set x = long|replace('y', '') %}{% endfor %}", _WORK),
    ],
)
def test_template_cannot_take_long(template: str, message: str) -> None:
    """Loops, growing texts and growing numbers end before they take time or memory."""
    began = time.process_time()

    with pytest.raises(GraphFailed, match=message):
        _write(template)

    assert time.process_time() - began < 2


_PIECES = st.sampled_from(
    [
        *("{{", "}}", "{%", "%}", "for", "in", "endfor", "if", "else", "endif", "set", "is"),
        *("panel", "facts.k", "question", "count", "x", "|", "upper", "join", "default", "range"),
        *(
            "(",
            ")",
            "[",
            "]",
            ":",
            ",",
            "=",
            "==",
            "~",
            "+",
            "*",
            "%",
            "not",
            "defined",
            "1",
            "'s'",
        ),
    ]
)
_EXPRESSIONS = st.lists(_PIECES, min_size=1, max_size=6).map(" ".join)


@settings(max_examples=100)
@given(_EXPRESSIONS, _EXPRESSIONS)
def test_no_template_does_anything_but_work_or_be_refused(left: str, right: str) -> None:
    """Whatever is written, the answer is a text or a failure that names its place."""
    template = f"{{{{ {left} }}}}{{% for x in panel %}}{{{{ {right} }}}}{{% endfor %}}"
    try:
        text = _write(template)
    except GraphFailed as failed:
        text = str(failed)

    assert isinstance(text, str)


def test_jinja_is_loaded_with_the_first_prompt() -> None:
    """Neither the command line nor a Router without graphs pays for it."""
    code = (
        "import sys, vsr.cli, vsr.graph.transform.prompt; "
        "print('jinja2' in sys.modules); "
        "vsr.graph.transform.prompt.check_template('', ()); "
        "print('jinja2' in sys.modules)"
    )

    run = subprocess.run(  # noqa: S603  # our own interpreter
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    assert run.stdout.split() == ["False", "True"]
