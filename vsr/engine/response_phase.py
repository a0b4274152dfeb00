"""The response-header phase: what the client is told about the routing of its request."""

from vsr.codec.chat import ChatRequest
from vsr.decision.evaluate import Verdict
from vsr.routing.effect import HeaderEdit

_MATCHED = {"keyword": b"x-vsr-matched-keywords", "context": b"x-vsr-matched-context"}


def debug_edits(verdict: Verdict | None, chat: ChatRequest) -> list[HeaderEdit]:
    """Return what a request with `x-vsr-debug` is told besides, in the reference's order.

    Args:
        verdict: what the recipe decided; None for a named model.
        chat: the request.
    """
    edits = [
        HeaderEdit(b"x-vsr-selected-reasoning", b"off"),
        HeaderEdit(b"x-vsr-injected-system-prompt", b"false"),
    ]
    signals = verdict.signals if verdict is not None else {}
    for signal_type, name in _MATCHED.items():
        if signals.get(signal_type):
            edits.append(HeaderEdit(name, ",".join(signals[signal_type]).encode()))
    if verdict is not None:
        edits.append(HeaderEdit(b"x-vsr-context-token-count", b"%d" % chat.token_count))
    return edits
