"""One call of a session in the forms that the different backends of its model take."""

from collections.abc import Callable
from typing import Protocol

import attrs

from vsr.codec.chat import ChatRequest
from vsr.engine.calls import call_of
from vsr.engine.endpoints import Endpoint
from vsr.engine.hygiene import HYGIENE
from vsr.engine.request_phase import Outgoing
from vsr.engine.target import Target
from vsr.engine.user_key import dispatch_for
from vsr.errors import RoutingFailed
from vsr.routing.plan import Call
from vsr.routing.request import Request


class Source(Protocol):
    """What calls are made of: a client's request, or that of a graph's step."""

    @property
    def endpoint(self) -> Endpoint:
        """Return what was asked for."""
        ...

    @property
    def request(self) -> Request:
        """Return the request."""
        ...

    @property
    def chat(self) -> ChatRequest | None:
        """Return the request as routing reads it."""
        ...


@attrs.define(eq=False)
class SessionRenditions:
    """Implements `routing.plan.Renditions` for one session and one of its calls.

    Each form is made anew of the client's request, by the very code that makes the call of a model
    whose backends are all alike: model name, path, headers, credential, the user's key, reasoning,
    plugins and translation are those of the one kind.
    """

    _session: Source
    _target: Target
    """Has variants."""
    _commit: Callable[[Target, Outgoing], None]
    """Told what the session goes on with."""
    profile: int
    _outgoing: dict[int, Outgoing]
    """What was made so far, by profile."""

    def call_for(self, profile: int) -> Call:
        """Return the client's request for the backends of another profile.

        Raises:
            RoutingFailed: the request is no chat.
        """
        session = self._session
        if session.chat is None:
            raise RoutingFailed
        variant = self._target.variants[profile]
        outgoing = dispatch_for(session.endpoint, session.request, session.chat, variant)
        self._outgoing[profile] = outgoing
        return call_of(session.request, HYGIENE, outgoing.effect)

    def answered_by(self, profile: int) -> None:
        """Let the answer be read as what a backend of that profile says."""
        self._commit(self._target.variants[profile], self._outgoing[profile])


def renditions(
    session: Source,
    target: Target,
    outgoing: Outgoing,
    commit: Callable[[Target, Outgoing], None],
) -> SessionRenditions:
    """Return the forms of a call that `outgoing` was made for; `target` has variants."""
    profile = outgoing.profile
    return SessionRenditions(session, target, commit, profile, {profile: outgoing})
