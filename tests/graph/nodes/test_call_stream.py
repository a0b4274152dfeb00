"""Whether a call streams, where another step says so."""

from collections.abc import Sequence

import pytest

from vsr.engine.shipped import BUILTIN
from vsr.graph.graph import GraphCompiler
from vsr.graph.value import ModelRef
from vsr.resources.graph import GraphSource, ParamSpec, ParamType


def faults(stream: str, *before: dict[str, object]) -> Sequence[str]:
    """Return what is wrong with a graph whose one call streams as `stream` says."""
    call = {"id": "answer", "type": "call", "model": "a", "stream": stream}
    source = GraphSource(
        "g",
        {
            "text": ParamSpec(ParamType.STRING),
            "word": ParamSpec(ParamType.ENUM, values=("never", "collect")),
        },
        steps=(*before, call, {"type": "respond", "from": "$answer"}),
    )
    found: list[str] = []
    compiler = GraphCompiler(
        BUILTIN.shipped_registries(), lambda _: None, lambda ref: ModelRef(ref.model, ref.model)
    )
    compiler.open(source, lambda _path, *text: found.append(text[0]))
    return found


SETTINGS: dict[str, object] = {
    "id": "how",
    "type": "transform",
    "transformer": "confidence_settings",
}


def test_step_may_say_whether_a_call_streams() -> None:
    """What it can say is known: never that the graph ends with the call."""
    assert faults("$how.stream", SETTINGS) == []
    assert faults("$params.word") == []


@pytest.mark.parametrize("stream", ["$params.text", "$request.question"])
def test_graph_cannot_find_out_while_it_runs_that_it_ends_with_a_call(stream: str) -> None:
    """Nobody could check then that nothing comes behind it."""
    assert faults(stream) == [
        "stream may turn out as tail, and only what is known beforehand may say that"
    ]
