"""Go templates: what they write, what is refused, and that they are bounded."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vsr.graph.transform.go_template import MAX_STEPS, Data, compile_template
from vsr.graph.transform.go_template_text import MAX_TEMPLATE_BYTES
from vsr.graph.transform.go_template_tree import ListOf, RecordOf
from vsr.graph.transform.template_refused import TemplateRefused

SHAPE = RecordOf(
    {
        "Name": "text",
        "Count": "number",
        "Flag": "truth",
        "None": ListOf("text"),
        "Items": ListOf(RecordOf({"Text": "text", "Tags": ListOf("text")})),
    }
)
DATA: Data = {
    "Name": "né",
    "Count": 2,
    "Flag": False,
    "None": (),
    "Items": ({"Text": "one", "Tags": ("x", "y")}, {"Text": "", "Tags": ()}),
}


def _render(template: str) -> str:
    return compile_template(template, SHAPE).render(DATA)


@pytest.mark.parametrize(
    ("template", "wanted"),
    [
        ("", ""),
        ("plain } text", "plain } text"),
        ("{{.Name}}-{{ .Count }}-{{.Flag}}", "né-2-false"),
        ("a {{- .Name -}} b", "anéb"),
        ("a {{- /* a }} comment */ -}}\n b", "ab"),
        ("a {{/* x */}} b", "a  b"),
        ('{{"q\\"\\n"}}{{`raw\\n`}}{{-3}}{{true}}', 'q"\nraw\\n-3true'),
        ("{{range .Items}}[{{.Text}}]{{end}}", "[one][]"),
        ("{{range $item := .Items}}[{{$item.Text}}{{$.Name}}]{{end}}", "[onené][né]"),
        ("{{range $i, $item := .Items}}{{add $i 1}}.{{$item.Text}} {{end}}", "1.one 2. "),
        ("{{range .None}}x{{else}}none of {{.Name}}{{end}}", "none of né"),
        ("{{range .Items}}{{range .Tags}}{{.}},{{end}}{{end}}", "x,y,"),
        ("{{if .Name}}yes{{else}}no{{end}}", "yes"),
        ("{{if .Flag}}a{{else if .Count}}b{{else}}c{{end}}|", "b|"),
        ("{{if .Flag}}a{{else if .None}}b{{else}}c{{end}}|", "c|"),
        ("{{if not .None}}empty{{end}}", "empty"),
        ("{{with .Name}}{{.}}!{{end}}{{with .Flag}}x{{else}}{{.Count}}{{end}}", "né!2"),
        ("{{if $x := .Name}}{{$x}}{{end}}", "né"),
        ("{{len .Items}}{{len .Name}}{{.Name | len | add 1}}", "234"),
        ("{{if eq .Count 1 2}}in{{end}}{{if ne .Name `né`}}x{{end}}", "in"),
        (
            "{{lt 1 2}} {{le 2 2}} {{gt 1 2}} {{ge 2 3}} {{lt `a` `b`}}",
            "true true false false true",
        ),
        ("{{and .Name 0 1}} {{or 0 .Name}} {{or 0 false}} {{and 1 2}}", "0 né false 2"),
        ("{{(index .Items 0).Text}} {{index .None 0 | and .Flag}}", "one false"),
        ("{{if and .Flag (index .None 0)}}x{{end}}ok", "ok"),
        ("{{$n := 1}}{{range .Items}}{{$n = add $n 1}}{{end}}{{$n}}", "3"),
        ("{{$n := 1}}{{range .Items}}{{$n := 9}}{{end}}{{$n}}", "1"),
        ("{{printf `%s=%d %v 100%%` .Name .Count .Flag}}", "né=2 false 100%"),
    ],
)
def test_template_writes_what_go_would(template: str, wanted: str) -> None:
    """Source: Go, package text/template; `add` is looper-algorithms 8.1."""
    assert _render(template) == wanted


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("a\nb {{.Nmae}}", "line 2, column 5: a record has no field 'Nmae'; it has Name, Count"),
        ("{{.Name.First}}", "a text has no field 'First'"),
        ("{{range .Items}}{{.Name}}{{end}}", "column 19: a record has no field 'Name'"),
        ("{{$x}}", "unknown variable $x"),
        ("{{$x = 1}}", "unknown variable $x"),
        ("{{if .Flag}}{{$x := 1}}{{end}}{{$x}}", "unknown variable $x"),
        ("{{$ := 1}}", "'$' cannot be assigned"),
        ("{{.Items}}", "a list cannot be written as text"),
        ("{{range .Items}}{{.}}{{end}}", "a record cannot be written as text"),
        ("{{index .Items 2}}{{/* */}}", "a record cannot be written as text"),
        ("{{range .Name}}{{end}}", "'range' goes through a list, not a text"),
        ("{{add .Name 1}}", "'add' takes a number, not a text"),
        ("{{printf 1}}", "'printf' takes a text, not a number"),
        ("{{len 5}}", "a number has no length"),
        ("{{index .Name 0}}", "'index' takes a list, not a text"),
        ("{{index .Items `x`}}", "'index' takes a number, not a text"),
        ("{{eq .Name 1}}", "'eq' cannot compare a text and a number"),
        ("{{eq .None .None}}", "'eq' cannot compare a list and a list"),
        ("{{add 1}}", "'add' takes 2 arguments"),
        ("{{and}}", "'and' takes 1 to 9 arguments"),
        ("{{html .Name}}", "'html' is no function here; functions are add, and"),
        ("{{template `x`}}", "'template' is not supported here"),
        ("{{break}}", "'break' is not supported here"),
        ("{{.Name", "line 1, column 1: this action is not closed with }}"),
        ("{{/* never closed", "this action is not closed"),
        ("{{.Name ~ 1}}", "column 9: unexpected '~'"),
        ("{{1.5}}", "unexpected '1'"),
        ("{{}}", "something is missing"),
        ("{{add 1 len}}", "put 'len' and its arguments in parentheses"),
        ("{{.Name .Count}}", "unexpected '.Count'"),
        ("{{1 | 2}}", "behind '|' stands a function"),
        ("{{(add 1 2}}", "something is missing at the end"),
        ("{{(add 1 2 | )}}", "behind '|' stands a function"),
        ("{{if .Flag}}x", "this 'if' has no 'end'"),
        ("{{if .Flag}}x{{else}}y", "this 'if' has no 'end'"),
        ("x{{end}}", "unexpected 'end'"),
        ("{{else}}", "unexpected 'else'"),
        ("{{if 1}}{{else}}{{else}}{{end}}", "a second 'else'"),
        ("{{if 1}}{{end .Name}}", "unexpected '.Name'"),
        ("{{range .Items}}{{else if 1}}{{end}}", "unexpected 'if'"),
        ("{{99999999999999999999}}", "this number is too large"),
        ("{{9223372036854775808}}", "this number is too large"),
        (r'{{"\x41"}}', "write special characters as"),
        ("x" * (MAX_TEMPLATE_BYTES + 1), "larger than 65536 bytes"),
        ("{{if 1}}" * 30 + "{{end}}" * 30, "nested more than 20 deep"),
        ("{{if 1}}" + "{{else if 1}}" * 30 + "{{end}}", "nested more than 20 deep"),
        ("{{" + "(" * 3000 + "1" + ")" * 3000 + "}}", "nested more than 20 deep"),
    ],
)
def test_template_is_refused_when_it_is_loaded(template: str, message: str) -> None:
    """The message has the place and what is wrong; nothing runs."""
    with pytest.raises(TemplateRefused) as raised:
        compile_template(template, SHAPE)

    assert message in str(raised.value)
    assert str(raised.value).startswith(("template line ", "the template is"))


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("\n{{(index .Items 2).Text}}", "line 2, column 4: the list has no item of this index"),
        ("{{index .None 0}}", "the list has no item of this index"),
        ("{{add 9223372036854775807 .Count}}", "a number becomes too large"),
        ("{{printf `%s` .Count}}", "'printf' has no fitting value for %s"),
        ("{{printf `%d %d` .Count}}", "'printf' has no fitting value for %d"),
        ("{{printf `%s` .Name .Name}}", "'printf' has more values"),
        ("{{printf `%5d` .Count}}", "'printf' knows %s, %d, %v and %%"),
        ("{{$x := 1}}{{$x = .Name}}{{add $x 1}}", "'add' takes numbers"),
        ("{{$x := 1}}{{$x = .Items}}{{$x}}", "only texts, numbers and truth values"),
        ("{{$x := 1}}{{$x = .Name}}{{$x.Field}}", "there is no field 'Field'"),
        ("{{$x := 1}}{{$x = .Name}}{{range $x}}{{end}}", "'range' goes through a list"),
        ("{{$x := `a`}}{{$x = 1}}{{len $x}}", "this has no length"),
        ("{{$x := .None}}{{$x = 1}}{{index $x 1}}", "'index' takes a list and a number"),
        ("{{$x := 1}}{{$x = .Name}}{{printf (or 0 $x 1) 1 2}}", "'printf' has more values"),
        ("{{$x := 1}}{{$x = .Name}}{{eq $x 1}}", "'eq' cannot compare these"),
        ("{{lt .Flag true}}", "'lt' cannot compare these"),
    ],
)
def test_template_that_its_data_do_not_allow_is_refused(template: str, message: str) -> None:
    """What only the data can tell has its place in the message, too, and none of the data."""
    with pytest.raises(TemplateRefused) as raised:
        _render(template)

    assert message in str(raised.value)
    assert "né" not in str(raised.value)


_LOOP = ListOf("text")


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{{range .}}{{range $}}{{range $}}{{end}}{{end}}{{end}}", f"more than {MAX_STEPS} steps"),
        ("{{range .}}{{range $}}" + "x" * 1000 + "{{end}}{{end}}", "text becomes longer than"),
        ("{{$x := `ab`}}{{range .}}{{$x = printf `%s%s` $x $x}}{{end}}", "text becomes too long"),
        ("{{range .}}{{range $}}{{if eq . .}}{{end}}{{end}}{{end}}", f"more than {MAX_STEPS}"),
    ],
)
def test_template_cannot_take_long(template: str, message: str) -> None:
    """Nested loops, doubled texts and long comparisons end; what they use is bounded."""
    data = ("x" * 20_000,) * 300
    compiled = compile_template(template, _LOOP)
    began = time.process_time()

    with pytest.raises(TemplateRefused, match=message):
        compiled.render(data)

    assert time.process_time() - began < 3


_VALUES = [".Name", ".Items", ".", "$", "$x", "1", "`t`", "add", "eq", "len"]
_BLOCKS = ["range", "if", "else", "end", "with"]
_SIGNS = ["{{", "}}", "{{-", "-}}", ":=", "=", ",", "|", "(", ")", "\n"]
_WORDS = st.sampled_from(_VALUES + _BLOCKS + _SIGNS)


@settings(max_examples=150)
@given(st.lists(_WORDS, max_size=14).map(" ".join))
def test_no_template_does_anything_but_work_or_be_refused(template: str) -> None:
    """Whatever is written, the answer is a text or a refusal with a reason."""
    try:
        text = _render(template)
    except TemplateRefused as refusal:
        text = str(refusal)

    assert isinstance(text, str)
