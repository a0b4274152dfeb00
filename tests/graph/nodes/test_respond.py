"""Node type `respond`."""

import pytest

from tests.fakes.graph import make_context
from vsr.graph.context import Reply
from vsr.graph.nodes.respond import RespondNode
from vsr.headers import Headers


async def test_respond_answers_with_a_reply() -> None:
    """Headers of the backend stay behind, but for the type."""
    ctx = make_context()
    headers = Headers([(b"content-type", b"text/plain"), (b"set-cookie", b"a=b")])
    ctx.values["draft"] = Reply(201, headers, b"hello")

    answer = await RespondNode("$draft").run(ctx)

    assert (answer.status, answer.body) == (201, b"hello")
    assert [(edit.name, edit.value) for edit in answer.edits] == [(b"content-type", b"text/plain")]


async def test_respond_from_something_else_is_a_bug() -> None:
    """Compiled graphs don't do that."""
    with pytest.raises(TypeError):
        await RespondNode("$params.model").run(make_context())
