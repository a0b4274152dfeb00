"""Node type `transform`."""

from tests.fakes.graph import make_run, problems_of, told

END = {"type": "respond", "from": "$one"}


async def test_transformers_fields_may_be_references() -> None:
    """Also those inside of a list."""
    step = {
        "id": "one", "type": "transform", "transformer": "text", "between": "-",
        "parts": ["x", "$request.question"], "case": "upper",
    }  # fmt: skip

    assert await told(make_run(), step, END) == "X-WHAT IS IT?"


def test_unknown_transformer_is_refused() -> None:
    """With those that there are."""
    [found] = problems_of([{"type": "transform", "transformer": "texts"}, {**END, "from": "x"}])

    assert "transformer: is no transformer: 'texts', known: count, record, shown, text" in found
