"""What the fields of nodes refer to."""

from tests.fakes.graph import make_context
from vsr.graph.context import Reply
from vsr.graph.nodes.node import resolve
from vsr.headers import Headers


def test_field_means_a_parameter_a_step_or_itself() -> None:
    """In that order of prefixes."""
    ctx = make_context(params={"model": "alpha", "a.b": "dotted"})
    reply = Reply(200, Headers(), b"")
    ctx.values["draft"] = reply

    assert resolve("$params.model", ctx) == "alpha"
    assert resolve("$params.a.b", ctx) == "dotted"
    assert resolve("$draft", ctx) is reply
    assert resolve("draft", ctx) == "draft"
    assert resolve("", ctx) == ""
