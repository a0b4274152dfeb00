"""Calls of graph steps: what a hop asks of its model."""

from collections.abc import Sequence

import msgspec
import pytest

from tests.fakes.router import as_snapshot, document_of, model_of
from vsr.codec.chat import read_chat
from vsr.codec.chat_body import read_body
from vsr.engine.extensions import Surroundings
from vsr.engine.hop import HopModel, SessionHops
from vsr.engine.pipeline import compile_engine
from vsr.engine.shipped import BUILTIN
from vsr.graph.budget import DEFAULT_OUTPUT_TOKENS
from vsr.headers import HeaderLine, Headers
from vsr.routing.budget import Price
from vsr.routing.plan import Hop
from vsr.routing.request import Request
from vsr.slices import at_once

PRICE = Price(1.0, 2.0)


def open_hop(
    members: dict[str, object],
    *,
    is_bounded: bool = True,
    card_tokens: int | None = None,
    lines: Sequence[HeaderLine] = (),
    is_strict: bool = False,
) -> Hop:
    """Return a hop of a request with these members."""
    data = msgspec.json.encode({"messages": [{"role": "user", "content": "Hi"}], **members})
    document = document_of(model_of(8000, "alpha"), default="alpha")
    around = Surroundings(float, float)
    engine = at_once(
        compile_engine(as_snapshot(document), 1, extensions=BUILTIN, surroundings=around)
    )
    client = b'{"model":"alpha","messages":[]}'
    target = engine._settings.entrypoints.choose(read_chat(client), {})[0]
    request = Request(
        b"POST", b"/v1/messages", b"here", b"http", Headers(list(lines)), client, "id-1"
    )
    hops = SessionHops(
        request,
        lambda _: HopModel(target, PRICE, card_tokens),
        float,
        ((b"x-static", b"1"),),
        is_strict,
    )
    return hops.open("alpha", read_body(data), reliability=None, is_bounded=is_bounded)


def asked(hop: Hop) -> dict[str, object]:
    """Return the limits that the backend gets."""
    members: dict[str, object] = msgspec.json.decode(hop.call.body)
    return {name: value for name, value in members.items() if name.startswith("max_")}


@pytest.mark.parametrize(
    ("members", "card_tokens", "limits", "bound"),
    [
        ({}, None, {"max_completion_tokens": DEFAULT_OUTPUT_TOKENS}, DEFAULT_OUTPUT_TOKENS),
        ({}, 100, {"max_completion_tokens": 100}, 100),
        ({"max_tokens": 50}, 100, {"max_tokens": 50}, 50),
        ({"max_tokens": 500}, 100, {"max_tokens": 100}, 100),
        ({"max_completion_tokens": 500}, 100, {"max_completion_tokens": 100}, 100),
        (
            {"max_completion_tokens": 500, "max_tokens": 50},
            None,
            {"max_completion_tokens": 50, "max_tokens": 50},
            50,
        ),
        (
            {"max_completion_tokens": 500, "max_tokens": 400},
            100,
            {"max_completion_tokens": 100, "max_tokens": 100},
            100,
        ),
        ({"max_tokens": 50, "n": 3}, None, {"max_tokens": 50}, 150),
    ],
)
def test_longest_answer_is_known_and_asked_for(
    members: dict[str, object], card_tokens: int | None, limits: dict[str, object], bound: int
) -> None:
    """The least of what step, client and model card say, whichever member a backend goes by."""
    hop = open_hop(members, card_tokens=card_tokens)

    assert asked(hop) == limits
    assert hop.output_bound_tokens == bound


def test_nothing_is_bounded_where_no_limit_asks_for_it() -> None:
    """The request stays as it is."""
    hop = open_hop({"max_tokens": 500}, is_bounded=False, card_tokens=100)

    assert asked(hop) == {"max_tokens": 500}
    assert (hop.prompt_bound_tokens, hop.output_bound_tokens) == (0, 0)


def test_strict_bound_of_a_prompt_is_its_bytes() -> None:
    """No tokenizer makes more tokens than bytes."""
    loose, strict = open_hop({"max_tokens": 1}), open_hop({"max_tokens": 1}, is_strict=True)

    assert 0 < loose.prompt_bound_tokens < strict.prompt_bound_tokens
    assert strict.prompt_bound_tokens >= len(strict.call.body) - len(b"alpha")


def test_hop_is_a_chat_completion_of_its_own() -> None:
    """What the client's headers say of its own body and answer does not go along."""
    lines = [
        (b"content-length", b"31"),
        (b"accept", b"text/event-stream"),
        (b"x-vsr-debug", b"true"),
        (b"x-user", b"7"),
    ]
    hop = open_hop({}, lines=lines)

    fields = dict(hop.call.headers.lines)
    assert hop.call.target == b"/v1/chat/completions"
    assert fields[b"content-length"] == b"%d" % len(hop.call.body)
    assert fields[b"accept"] == b"application/json"
    assert (fields[b"x-user"], fields[b"x-static"]) == (b"7", b"1")
    assert b"x-vsr-debug" not in fields
    assert hop.price == PRICE
