"""Graphs of a document: what becomes of them, inline and in files of their own."""

from pathlib import Path

import pytest
import yaml

from vsr.config import graph_files
from vsr.config.files import DocumentFiles
from vsr.config.load import MAX_DOCUMENT_BYTES
from vsr.config.report import Report
from vsr.config.show import render
from vsr.config.source import Checked, check_bytes, check_file, read_graph
from vsr.errors import ConfigRejected
from vsr.resources.graph import (
    CallBudget,
    GraphCall,
    GraphLimits,
    GraphSource,
    OnExhausted,
    ParamSpec,
    ParamType,
)

MODELS = """
providers:
  models:
    - {name: a, backend_refs: [{endpoint: "10.0.0.1"}]}
    - {name: b, backend_refs: [{endpoint: "10.0.0.2"}]}
"""
DEBATE = """\
name: debate
description: Two answer, one decides.
params:
  panel: {type: model_refs, min: 1, max: 3, default: [a, {model: b, weight: 2}]}
  judge: {type: model, description: Decides.}
  wait: {type: duration, min: 1s, max: 1m, default: 30s}
  style: {type: enum, values: [short, long], required: false}
limits:
  {timeout: 45s, max_hops: 6, max_tokens: 30000, max_cost: 0.1, on_exhausted: fail, strict: true}
steps:
  - id: panel
    type: parallel
    over: $params.panel
    do:
      - {id: answer, type: call, model: $expert.called_name}
  - {type: respond, from: $panel}
"""
"""Line 11 is that of `- id: panel`."""


def indented(text: str, blanks: int) -> str:
    """Return the lines of `text` further to the right."""
    return "".join(f"{' ' * blanks}{line}\n" for line in text.splitlines())


def document(graph: str, decision: str = "") -> str:
    """Return a document with the graph `debate`, and decisions."""
    return f"{MODELS}routing:\n  graphs:\n    debate:\n{indented(graph, 6)}{decision}"


def checked(text: str, environ: dict[str, str] | None = None) -> Checked:
    """Return the document, which is valid."""
    return check_bytes(text.encode(), environ or {}, Report("doc.yaml"))


def graph_of(result: Checked, program: int = 0) -> GraphSource:
    """Return the only graph of a recipe."""
    [graph] = result.snapshot.programs[program].graphs
    return graph


def problems(file: Path) -> list[str]:
    """Return why a document is refused."""
    with pytest.raises(ConfigRejected) as caught:
        check_file(file, {})
    return [str(each).replace(f"{file.parent}/", "") for each in caught.value.problems]


def test_graph_is_typed_but_for_its_steps() -> None:
    """Limits and parameters are records; the whole stands beside as it was written."""
    graph = graph_of(checked(document(DEBATE)))

    written = yaml.safe_load(DEBATE)
    assert graph.name == "debate"
    assert graph.description == "Two answer, one decides."
    assert graph.limits == GraphLimits(45.0, 6, 30_000, 0.1, OnExhausted.FAIL, strict=True)
    assert graph.params == {
        "panel": ParamSpec(
            ParamType.MODEL_REFS,
            required=False,
            default=["a", {"model": "b", "weight": 2}],
            min=1,
            max=3,
        ),
        "judge": ParamSpec(ParamType.MODEL, description="Decides."),
        "wait": ParamSpec(ParamType.DURATION, required=False, default="30s", min=1, max=60),
        "style": ParamSpec(ParamType.ENUM, required=False, values=("short", "long")),
    }
    assert list(graph.steps) == written["steps"]
    assert graph.authored == written


def test_graph_without_limits_has_none() -> None:
    """Nothing is made up."""
    graph = graph_of(checked(document("steps: [{type: respond}]")))

    assert (graph.limits, graph.params, graph.description) == (GraphLimits(), {}, "")


def test_lines_of_an_inline_graph_are_the_document_s() -> None:
    """By the path within the graph; what is not there has the line of what is around it."""
    text = document(DEBATE)
    graph = graph_of(checked(text))

    lines = text.splitlines()
    assert (graph.file, graph.path) == ("doc.yaml", ("routing", "graphs", "debate"))
    assert "debate:" in lines[graph.line() - 1]
    assert "- id: panel" in lines[graph.line(("steps", 0)) - 1]
    assert "id: answer" in lines[graph.line(("steps", 0, "do", 0, "model", "x")) - 1]
    assert "max_hops" in lines[graph.line(("limits", "max_hops")) - 1]


def test_references_of_the_graph_are_no_variables() -> None:
    """`$name` is the graph's, `${NAME}` the environment's, and `$${` writes a brace."""
    step = "{type: x, a: $params.judge, b: '${WHO} $WHO $$ $${WHO}', c: '${NO:-word}', d: $1}"
    environ = {"WHO": "me", "params": "wrong", "1": "wrong"}

    for text in (
        document(f"steps: [{step}]"),
        f"{MODELS}recipes: [{{name: r, routing: {{graphs: {{g: {{steps: [{step}]}}}}}}}}]",
    ):
        graphs = [
            graph for each in checked(text, environ).snapshot.programs for graph in each.graphs
        ]
        assert dict(graphs[0].steps[0]) == {
            "type": "x",
            "a": "$params.judge",
            "b": "me $WHO $$ ${WHO}",
            "c": "word",
            "d": "$1",
        }


def test_variables_are_the_document_s_everywhere_else() -> None:
    """What a decision gives its graph is plain configuration."""
    graph = "params: {n: {type: string}}\nsteps: [{type: respond}]"
    decision = (
        "  decisions: [{name: d, modelRefs: [{model: a}], "
        "algorithm: {type: graph, graph: debate, params: {n: $N}}}]\n"
    )

    result = checked(document(graph, decision), {"N": "text"})

    call = result.snapshot.programs[0].decisions[0].algorithm.graph
    assert call is not None
    assert call.params == {"n": "text"}


def test_variable_alone_may_be_a_number_of_limits_and_parameters() -> None:
    """As elsewhere, where the type is known; what it gives is never shown."""
    graph = (
        "params: {n: {type: integer, default: '${N}'}, yes: {type: boolean, default: '${YES}'}}\n"
        "limits: {max_hops: '${N}'}\nsteps: [{type: x, n: '${N}'}]"
    )

    result = checked(document(graph), {"N": "7", "YES": "true"})

    source = graph_of(result)
    assert source.limits.max_hops == 7
    assert (source.params["n"].default, source.params["yes"].default) == (7, True)
    assert source.steps[0]["n"] == "7"
    assert "${N}" in render(result.document, result.loaded.lines)


@pytest.mark.parametrize("name", ["debate", "builtin/fusion"])
def test_decision_calls_a_graph_with_its_values_and_budget(name: str) -> None:
    """In the types of a graph that is known; one that is built in looks at them itself."""
    graph = "params: {n: {type: number}, wait: {type: duration}}\nsteps: [{type: respond}]"
    decision = (
        "  decisions: [{name: d, modelRefs: [{model: a}], algorithm: {type: graph, "
        f"graph: {name}, params: {{n: 3, wait: 1m, }}, budget: {{max_prompt_tokens: 1, "
        "max_completion_tokens: 2, max_total_tokens: 3, max_estimated_cost: 0.5, "
        "max_wall_time_ms: 1500}}}]\n"
    )

    [made] = checked(document(graph, decision)).snapshot.programs[0].decisions

    budget = CallBudget(1, 2, 3, 0.5, 1.5)
    assert made.algorithm.type == "graph"
    assert made.algorithm.graph == GraphCall(name, {"n": 3, "wait": "1m"}, budget)


def test_budget_of_zero_is_none() -> None:
    """As in the reference."""
    decision = (
        "  decisions: [{name: d, algorithm: {type: graph, graph: debate, budget: "
        "{max_total_tokens: 0, max_wall_time_ms: 0, max_estimated_cost: 0}}}]\n"
    )

    [made] = checked(document("steps: [{type: respond}]", decision)).snapshot.programs[0].decisions

    assert made.algorithm.graph == GraphCall("debate")


def write(folder: Path, graph: str | bytes = DEBATE) -> Path:
    """Write a document that names a file, and the file."""
    (folder / "graphs").mkdir(exist_ok=True)
    content = graph.encode() if isinstance(graph, str) else graph
    (folder / "graphs" / "debate.yaml").write_bytes(content)
    file = folder / "config.yaml"
    file.write_text(document("file: graphs/debate.yaml"))
    return file


def test_graph_of_a_file_is_the_same_with_lines_of_its_own(tmp_path: Path) -> None:
    """Relative to the document, wherever the process was started."""
    file = write(tmp_path)

    graph = graph_of(check_file(file, {}))
    inline = graph_of(checked(document(DEBATE)))

    assert (graph.params, graph.limits, graph.steps) == (inline.params, inline.limits, inline.steps)
    assert (graph.file, graph.path) == (str(tmp_path / "graphs/debate.yaml"), ())
    assert graph.line() == 1
    assert graph.line(("steps", 0)) == 11


def test_recipes_name_files_too(tmp_path: Path) -> None:
    """Each recipe has its own names; the same file may stand behind several."""
    file = write(tmp_path)
    with file.open("a") as opened:
        opened.write(
            "recipes: [{name: r, routing: {graphs: {debate: {file: graphs/debate.yaml}}}}]"
        )

    programs = check_file(file, {}).snapshot.programs

    assert programs[1].graphs == programs[0].graphs


def test_problems_of_a_file_have_its_name_and_lines(tmp_path: Path) -> None:
    """Those of the document come first."""
    graph = "name: other\nlimits:\n  hops: 3\nsteps:\n  - {id: 1}\nfile: more.yaml\n"
    file = write(tmp_path, graph)
    with file.open("a") as opened:
        opened.write("version: v0.2\n")

    assert problems(file) == [
        "config.yaml:10: version: must be v0.3, 'v0.2' is not, write `version: v0.3`",
        (
            "graphs/debate.yaml:1: name: is not the graph's name, the document calls it 'debate', "
            "write that or remove it"
        ),
        "graphs/debate.yaml:3: limits.hops: is an unknown key, did you mean 'max_hops'?",
        "graphs/debate.yaml:5: steps[0].type: is missing, it says which node this is, add it",
        (
            "graphs/debate.yaml:5: steps[0].id: is no identifier, it takes letters, digits "
            "and `_`, and begins with no digit"
        ),
        (
            "graphs/debate.yaml:6: file: is out of place, a graph names a file, or says itself "
            "what it does, keep one of the two"
        ),
    ]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"- a\n", "graphs/debate.yaml:1: (document): must be a mapping, it is a list"),
        (
            b"steps: [\n",
            (
                "graphs/debate.yaml:2: (document): is not valid YAML, while parsing a flow node "
                "did not find expected node content"
            ),
        ),
        (b"\xff", "graphs/debate.yaml:1: (document): is not UTF-8 text, save the file as UTF-8"),
        (
            b"# nothing\n",
            "graphs/debate.yaml:1: (document): is empty, start from the example in the README",
        ),
        (
            b"steps: [{type: a}]\nsteps: [{type: b}]\n",
            "graphs/debate.yaml:2: steps: is given twice, first on line 1, keep one of the two",
        ),
        (
            b"",
            (
                "config.yaml:9: routing.graphs.debate.file: 'graphs/debate.yaml' can't be read, "
                "it is empty, write to it what is wanted, or correct the path"
            ),
        ),
        (
            b"#" * (MAX_DOCUMENT_BYTES + 1),
            (
                "config.yaml:9: routing.graphs.debate.file: 'graphs/debate.yaml' can't be read, "
                f"it is longer than {MAX_DOCUMENT_BYTES} bytes, correct the path"
            ),
        ),
    ],
    ids=["list", "broken", "not UTF-8", "no value", "key twice", "empty", "too large"],
)
def test_unusable_file_is_told_once(content: bytes, told: str, tmp_path: Path) -> None:
    """Nothing follows from it: a decision may name the graph."""
    file = write(tmp_path, content)
    with file.open("a") as opened:
        opened.write("  decisions: [{name: d, algorithm: {type: graph, graph: debate}}]\n")

    assert problems(file) == [told]


def test_missing_file_and_one_that_all_may_write_are_refused(tmp_path: Path) -> None:
    """Like every file that a document names."""
    file = write(tmp_path)
    graph = tmp_path / "graphs/debate.yaml"
    graph.chmod(0o666)

    assert "everybody may write it" in problems(file)[0]
    graph.unlink()
    assert "No such file or directory" in problems(file)[0]


def test_document_without_a_folder_may_name_no_file() -> None:
    """It came over the API, or from Kubernetes."""
    with pytest.raises(ConfigRejected, match="only a document that is a file itself"):
        checked(document("file: graphs/debate.yaml"))


def test_hash_covers_the_files_of_graphs(tmp_path: Path) -> None:
    """One that changes is another configuration; without any the hash is the document's own."""
    file = write(tmp_path)
    first, again = check_file(file, {}), check_file(file, {})
    (tmp_path / "graphs/debate.yaml").write_text(DEBATE + "# later\n")
    second = check_file(file, {})
    (tmp_path / "graphs/debate.yaml").rename(tmp_path / "graphs/moved.yaml")
    file.write_text(document("file: graphs/moved.yaml"))
    third = check_file(file, {})

    assert first.snapshot.hash == again.snapshot.hash == first.loaded.sha256
    assert len({each.snapshot.hash for each in (first, second, third)}) == 3
    assert len(first.snapshot.hash) == 64


def test_files_of_graphs_are_kept_for_whoever_watches(tmp_path: Path) -> None:
    """Under the path that the document writes, its bytes as they came."""
    report = Report("config.yaml", files=DocumentFiles(tmp_path))

    check_bytes(write(tmp_path).read_bytes(), {}, report)

    assert report.files.contents == {"graphs/debate.yaml": DEBATE.encode()}


def test_limit_of_values_holds_for_all_files_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A small document that names a file again and again does not grow without end."""
    file = write(tmp_path)
    with file.open("a") as opened:
        opened.write("    again: {file: graphs/more.yaml}\n")
    (tmp_path / "graphs/more.yaml").write_text(DEBATE.replace("name: debate\n", ""))
    used = check_file(file, {}).loaded.count

    monkeypatch.setattr(graph_files, "MAX_VALUES", used - 1)

    [told] = problems(file)
    assert told.startswith("graphs/more.yaml:1: (document): is too large")


def test_shown_document_holds_the_graphs_of_files(tmp_path: Path) -> None:
    """What is effective is shown."""
    result = check_file(write(tmp_path), {})

    shown = yaml.safe_load(render(result.document, result.loaded.lines))

    assert shown["routing"]["graphs"]["debate"]["steps"] == yaml.safe_load(DEBATE)["steps"]


def test_graph_may_be_read_without_a_document() -> None:
    """For those that are built in, and for checking one alone: models have any names then."""
    graph = read_graph("debate", DEBATE.encode(), {}, file="graphs/debate.yaml")

    inline = graph_of(checked(document(DEBATE)))
    assert (graph.name, graph.params, graph.steps) == ("debate", inline.params, inline.steps)
    assert (graph.file, graph.path, graph.line(("steps", 0))) == ("graphs/debate.yaml", (), 11)


def test_faults_of_a_graph_alone_are_told_with_its_file() -> None:
    """All of them at once."""
    with pytest.raises(ConfigRejected) as caught:
        read_graph("g", b"limits: {hops: 1}\nsteps: []\n", {}, file="g.yaml")

    assert [str(each) for each in caught.value.problems] == [
        "g.yaml:1: limits.hops: is an unknown key, did you mean 'max_hops'?",
        "g.yaml:2: steps: is missing or empty, a graph does something, add a step",
    ]
    with pytest.raises(ConfigRejected, match=r"g\.yaml:2: \(document\): is not valid YAML"):
        read_graph("g", b"[", {}, file="g.yaml")
