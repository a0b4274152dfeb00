"""The other models of a decision, for a call that failed."""

from collections.abc import Sequence

import attrs

from vsr.codec.refusal import is_refusal
from vsr.engine.calls import call_of
from vsr.engine.hygiene import HYGIENE
from vsr.engine.last_resort import LastResortAnswer
from vsr.engine.renditions import renditions
from vsr.engine.request_phase import Outgoing, as_chat
from vsr.engine.session import RoutingSession
from vsr.engine.target import Fallback, Target
from vsr.engine.user_key import dispatch_for
from vsr.errors import RoutingFailed
from vsr.graph.run import TailCall
from vsr.resources.reliability import FallbackPolicy
from vsr.routing.effect import ImmediateResponse
from vsr.routing.outcome import Outcome, Terminal
from vsr.routing.plan import Call, Label

_FAILED = Outcome(Terminal.FAILED)


@attrs.define(eq=False)
class SessionAlternatives:
    """Implements `routing.plan.Alternatives` for one session, which has handed out its tail call.

    Each call is made of the client's request alone: nothing of the failed call's provider, neither
    its headers nor its credentials, is in it.
    """

    _session: RoutingSession
    _fallback: Fallback
    _prepared: tuple[Target, Outgoing] | None = attrs.field(default=None, init=False)
    _first: TailCall | None = attrs.field(default=None, init=False)
    """The call that was held back when the next one was prepared; its entry is still open."""

    @property
    def policy(self) -> FallbackPolicy:
        """Return when and how far the call goes on."""
        return self._fallback.policy

    @property
    def models(self) -> Sequence[str]:
        """Return the decision's models in their order."""
        return tuple(self._fallback.targets)

    @property
    def has_tool_result(self) -> bool:
        """Return whether the request hands over what a tool did."""
        chat = self._session.chat
        return chat is not None and chat.facts.tool_messages > 0

    def is_refusal(self, body: bytes) -> bool:
        """Return whether a backend's whole answer is a refusal to answer."""
        return is_refusal(body)

    def prepare(self, model: str) -> Call:
        """Return the client's request as a call to `model`, and reserve for it.

        The call before has failed. Its ledger entry ends here, but for that of the first one,
        whose answer may still be the client's.

        Raises:
            VsrError: it cannot be said to that model, or nothing may be spent on it.
        """
        session, target = self._session, self._fallback.targets[model]
        chat, run, tail = session.chat, session.run, session.tail
        if chat is None or run is None or tail is None:
            raise RoutingFailed
        outgoing = dispatch_for(session.endpoint, session.request, chat, target)
        call = call_of(session.request, HYGIENE, outgoing.effect)
        entry = run.open_call(model)
        if self._first is None:
            self._first = tail
        else:
            run.close_call(tail.entry, _FAILED)
        session.tail = TailCall(model, entry, tail.reliability)
        self._prepared = target, outgoing
        call.model, call.spend = model, session
        call.policy = target.policy_with(tail.reliability)
        if target.variants:
            call.renditions = renditions(session, target, outgoing, self._answered)
        return call

    def _answered(self, target: Target, outgoing: Outgoing) -> None:
        self._prepared = target, outgoing

    def last_resort(self, path: Sequence[str]) -> ImmediateResponse:
        """Return the fixed answer behind the last model.

        Raises:
            RoutingFailed: the policy has none, or the request is no chat.
        """
        session, resort = self._session, self._fallback.policy.last_resort
        if session.chat is None or resort is None:
            raise RoutingFailed
        self._close(session.tail)
        self._close(self._first)
        draft = as_chat(session.endpoint, session.request, session.chat)
        unix_s = int(session.settings.surroundings.unix())
        answer = LastResortAnswer(resort, self._fallback.site)
        return answer.answer(session.endpoint.protocol, draft, tuple(path), unix_s)

    def commit(self, path: Sequence[str]) -> Label:
        """Let the session go on with the call prepared last; return what logs call it then.

        Raises:
            RoutingFailed: none was prepared.
        """
        if self._prepared is None:
            raise RoutingFailed
        session = self._session
        self._close(self._first)
        session.target, session.outgoing = self._prepared
        session.path = tuple(path)
        return session.target.label

    def give_back(self) -> None:
        """Let the first call's failure be the answer: the last candidate has failed, too."""
        if self._first is not None:
            self._close(self._session.tail)
            self._session.tail = self._first

    def abandon(self) -> None:
        """Take note that nobody waits any more while a candidate was asked."""
        self._close(self._first)

    def _close(self, call: TailCall | None) -> None:
        """End the ledger entry of a call that has failed."""
        run = self._session.run
        if call is not None and run is not None:
            run.close_call(call.entry, _FAILED)
