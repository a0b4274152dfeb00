"""What of a client's request never goes on to a backend, whoever asks it."""

from vsr.routing.effect import Effect, HeaderEdit

INTERNAL_HEADERS = frozenset(
    {
        b"x-vsr-fusion-depth",
        b"x-vsr-internal-auth",
        b"x-vsr-looper-decision",
        b"x-vsr-looper-iteration",
        b"x-vsr-looper-request",
        b"x-vsr-selected-recipe",
    }
)
"""Names of the reference's hop protocol: ours runs in process, so a client's copy means nothing."""

HYGIENE = Effect(removes=INTERNAL_HEADERS, edits=(HeaderEdit(b"accept-encoding", b"identity"),))
