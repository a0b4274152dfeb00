"""What signals have found in one request."""

from collections.abc import Sequence

from vsr.codec.chat import ChatRequest, read_chat
from vsr.decision.heard import hear, judged
from vsr.decision.signals.signal import SignalMatch

CHAT = read_chat(b'{"model":"auto","messages":[]}')


def test_signal_is_evaluated_once() -> None:
    """Also one that has found nothing."""
    heard: dict[str, Sequence[SignalMatch]] = {}
    calls: list[str] = []

    def signal(chat: ChatRequest) -> Sequence[SignalMatch]:
        calls.append(chat.model)
        return ()

    assert [hear("keyword", signal, CHAT, heard) for _ in range(2)] == [(), ()]
    assert calls == ["auto"]
    assert heard == {"keyword": ()}


class Half:
    """A learned signal that knows of one rule."""

    def asks(self, chat: ChatRequest) -> dict[str, bytes]:
        """Ask nothing."""
        del chat
        return {}

    def judge(self, chat: ChatRequest, answers: object) -> Sequence[SignalMatch]:
        """Return a match, and a rule that is unknown."""
        del chat, answers
        return [SignalMatch("known", 0.5), SignalMatch("unknown", None)]


def test_unknown_rule_is_no_match() -> None:
    """Only those who ask for it by its label learn that it is unknown."""
    matches: dict[str, float | None] = {}

    assert judged("topic", Half(), (CHAT, {}), matches) == [SignalMatch("known", 0.5)]
    assert matches == {"topic:unknown": None}
    assert judged("topic", None, (CHAT, {}), matches) == []
