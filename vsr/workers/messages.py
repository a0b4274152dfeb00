"""What a supervisor and its workers tell each other."""

import msgspec

from vsr.errors import Problem


class Place(msgspec.Struct, frozen=True):
    """Where a socket listens."""

    address: str
    port: int


class Word(msgspec.Struct, frozen=True, tag="word"):
    """One descriptor comes along: the memory of the version word."""


class Sockets(msgspec.Struct, frozen=True, tag="sockets"):
    """A descriptor for each place comes along, in this order."""

    places: tuple[Place, ...]


class Part(msgspec.Struct, frozen=True, tag="part"):
    """A part of the snapshot that the next `Start` or `Prepare` is about."""

    data: bytes


class Start(msgspec.Struct, frozen=True, tag="start"):
    """Serve the snapshot whose parts, and the word and sockets that it needs, came before."""

    version: int
    folder: str
    """Where relative paths in the document start."""
    attempt: int = 0
    """Of an activation: the worker is on trial, answers `Agreed` or `Refused` as to `Prepare`, and
    takes clients from `Commit` on."""


class Prepare(msgspec.Struct, frozen=True, tag="prepare"):
    """Build and warm the snapshot whose parts came before; answered by `Agreed` or `Refused`."""

    attempt: int
    version: int


class Commit(msgspec.Struct, frozen=True, tag="commit"):
    """The word names the version of this attempt by now; answered by `Committed`."""

    attempt: int


class Discard(msgspec.Struct, frozen=True, tag="discard"):
    """Give up what was built, or is being built, for this attempt; not answered."""

    attempt: int


class Drain(msgspec.Struct, frozen=True, tag="drain"):
    """Accept nothing new, let requests finish, end."""


class End(msgspec.Struct, frozen=True, tag="end"):
    """End what is under way."""


class Renew(msgspec.Struct, frozen=True, tag="renew"):
    """Load certificates anew: somebody asks for it; not answered."""


class Ask(msgspec.Struct, frozen=True, tag="ask"):
    """Somebody wants to know something, or wants something known; answered by `Answered`.

    What question and answer hold is a matter of those who ask and answer.
    """

    number: int
    """0: it comes before `Start`, is heeded before anything is served, and is not answered."""
    topic: str
    question: bytes = b""


Order = Word | Sockets | Part | Start | Prepare | Commit | Discard | Drain | End | Renew | Ask
"""What a supervisor says, in order."""


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """What `Start` was about serves."""


class Agreed(msgspec.Struct, frozen=True, tag="agreed"):
    """What `Prepare` was about is built and warm, and can be committed without fail."""

    attempt: int
    reused: tuple[str, ...] = ()
    """Components that would serve on as they are."""


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    """What `Start` or `Prepare` was about cannot be served; its attempt, 0 if it had none."""

    attempt: int
    problems: tuple[Problem, ...] = ()
    text: str = ""
    """Why, where it is no problem of the document."""


class Committed(msgspec.Struct, frozen=True, tag="committed"):
    """New requests and new connections get the version of this attempt."""

    attempt: int


class Sample(msgspec.Struct, frozen=True, array_like=True):
    """One number of a metric."""

    name: str
    labels: dict[str, str]
    value: float


class Family(msgspec.Struct, frozen=True):
    """One metric of one process."""

    name: str
    text: str
    kind: str
    """`counter`, `gauge` or `histogram`."""
    samples: tuple[Sample, ...] = ()


METRICS = "metrics"
"""Topic whose answer is what a worker counts: families, in msgpack."""


class Answered(msgspec.Struct, frozen=True, tag="answered"):
    """What one worker says to `Ask`."""

    number: int
    answer: bytes | None
    """None: it failed at it, and its log tells more."""


Report = Ready | Agreed | Refused | Committed | Answered
"""What a worker says."""
