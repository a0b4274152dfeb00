"""Resource `stream_comments`: what a client that waits for its stream is told meanwhile."""

import msgspec


class StreamComments(msgspec.Struct, frozen=True):
    """Comments of an event stream before its first content; None: not said."""

    progress: bool | None = None
    """Whether each step and call is told of as it begins and ends."""
    keep_alive_s: float | None = None
    """After so long a silence there is a comment; 0: none."""

    @property
    def is_any(self) -> bool:
        """Return whether there may be a comment at all."""
        return bool(self.progress or self.keep_alive_s)

    def over(self, other: "StreamComments") -> "StreamComments":
        """Return what counts where this word is the nearer one."""
        return StreamComments(
            other.progress if self.progress is None else self.progress,
            other.keep_alive_s if self.keep_alive_s is None else self.keep_alive_s,
        )


NO_COMMENTS = StreamComments()
