"""Node type `call`."""

import pytest

from tests.fakes.caller import FakeCaller
from tests.fakes.graph import make_context
from vsr.errors import BudgetExhausted
from vsr.graph.budget import Budget, Limits
from vsr.graph.context import Reply
from vsr.graph.nodes.call import CallNode
from vsr.resources.reliability import CallOverride, CallPolicy


@pytest.mark.parametrize(("model", "called"), [("beta", b"beta"), ("$params.model", b"alpha")])
async def test_call_asks_the_model_it_names_or_refers_to(model: str, called: bytes) -> None:
    """Its value is the whole reply."""
    caller = FakeCaller()

    reply = await CallNode(model).run(make_context(caller=caller))

    assert isinstance(reply, Reply)
    assert [call.body for call in caller.calls] == [called]


def test_handed_out_call_is_only_reserved() -> None:
    """The adapter makes it."""
    caller = FakeCaller()
    ctx = make_context(caller=caller)

    tail = CallNode("$params.model").hand_out(ctx)

    assert tail.model == "alpha"
    assert ctx.ledger.open_entries == [tail.entry]
    assert caller.calls == []


def test_call_is_not_handed_out_over_budget() -> None:
    """Reserved first."""
    with pytest.raises(BudgetExhausted):
        CallNode("alpha").hand_out(make_context(budget=Budget(Limits(max_hops=0))))


async def test_call_says_what_its_step_changes_of_timeouts_and_retries() -> None:
    """Whoever makes the wire request is told; a call that is handed out carries it."""
    caller, slow = FakeCaller(), CallOverride(total_s=7)
    node = CallNode("alpha", slow)

    await node.run(make_context(caller=caller))

    assert [call.policy for call in caller.calls] == [CallPolicy(total_s=7)]
    assert node.hand_out(make_context()).reliability is slow
