"""What a document says of comments before a stream's content."""

from pathlib import Path

import pytest

from tests.config.test_graphs import MODELS, checked, document, graph_of, problems
from vsr.config.source import Checked
from vsr.resources.graph import GraphCall
from vsr.resources.stream_comments import StreamComments


def call_of(result: Checked) -> GraphCall:
    """Return how the only decision of a document runs its graph."""
    [decision] = result.snapshot.programs[0].decisions
    assert decision.algorithm.graph is not None
    return decision.algorithm.graph


WITH_COMMENTS = "stream: {progress: true, keep_alive_after: 10s}\nsteps: [{type: respond}]"


def test_comments_of_a_stream_are_read() -> None:
    """Of a graph and of the decision that runs it, each by itself."""
    decision = """\
  decisions:
    - name: all
      modelRefs: [{model: a}]
      algorithm: {type: graph, graph: debate, stream: {keep_alive_after: 0s}}
"""
    result = checked(document(WITH_COMMENTS, decision))

    assert graph_of(result).stream == StreamComments(progress=True, keep_alive_s=10)
    assert call_of(result).stream == StreamComments(progress=None, keep_alive_s=0)


def test_comments_of_a_stream_go_with_the_reference_algorithms_too() -> None:
    """Which are graphs that ship."""
    decision = """\
  decisions:
    - name: all
      modelRefs: [{model: a}, {model: b}]
      algorithm: {type: fusion, stream: {progress: true}}
"""
    result = checked(f"{MODELS}routing:\n{decision}")

    assert call_of(result).stream == StreamComments(progress=True)


@pytest.mark.parametrize(
    ("graph", "algorithm", "problem"),
    [
        (
            "keep_alive_after: 0.5s",
            "type: graph, graph: debate",
            "routing.graphs.debate.stream.keep_alive_after: is less than 1s",
        ),
        (
            "progress: true",
            "type: graph, graph: debate, stream: {keep_alive_after: 1ms}",
            "routing.decisions[0].algorithm.stream.keep_alive_after: is less than 1s",
        ),
        (
            "keep_alive_after: often",
            "type: graph, graph: debate",
            "routing.graphs.debate.stream.keep_alive_after: ",
        ),
        (
            "progress: true",
            "type: static, stream: {progress: true}",
            "routing.decisions[0].algorithm.stream: is out of place",
        ),
    ],
)
def test_faulty_comments_of_a_stream_are_refused(
    graph: str, algorithm: str, problem: str, tmp_path: Path
) -> None:
    """With the place and the reason."""
    text = document(
        f"stream: {{{graph}}}\nsteps: [{{type: respond}}]",
        "  decisions:\n    - name: all\n      modelRefs: [{model: a}]\n"
        f"      algorithm: {{{algorithm}}}\n",
    )
    file = tmp_path / "doc.yaml"
    file.write_text(text)

    [told] = problems(file)

    assert problem in told
