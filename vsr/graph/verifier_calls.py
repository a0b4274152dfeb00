"""Questions to services that judge: entered in the ledger beside the calls to models."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import trio

from vsr.graph.context import NodeContext, code_of
from vsr.graph.ledger import VerifierCall
from vsr.routing.outcome import Terminal

T = TypeVar("T")


async def noted(ctx: NodeContext, kind: str, ask: Callable[[], Awaitable[T]]) -> T:
    """Ask, and enter in the ledger when that began and how it ended.

    Args:
        ctx: of the step that asks.
        kind: of the service, see `VerifierCall`.
        ask: raises a `VsrError` if there is no verdict.
    """
    ledger = ctx.run.ledger
    call = VerifierCall(kind, ctx.path, len(ledger.entries), trio.current_time())
    if ledger.verifier_calls is None:
        ledger.verifier_calls = []
    ledger.verifier_calls.append(call)
    try:
        verdict = await ask()
    except BaseException as error:
        call.ended_at = trio.current_time()
        call.terminal, call.cause = ctx.end_of(error)
        call.error = code_of(error)
        raise
    call.ended_at, call.terminal = trio.current_time(), Terminal.SUCCEEDED
    return verdict
