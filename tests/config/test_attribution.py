"""Who wrote a document that is about to be found."""

from vsr.config.attribution import EXPIRES_AFTER_S, Attributions
from vsr.config.origin import Origin

API = Origin("api", "operator", "req-1")


def test_author_is_told_once() -> None:
    """Of exactly the bytes that were announced."""
    attributions = Attributions(lambda: 0.0)
    attributions.register(b"a", API)

    assert attributions.origin_of(b"b") is None
    assert attributions.origin_of(b"a") is API
    assert attributions.origin_of(b"a") is None


def test_announcement_expires() -> None:
    """After ten minutes somebody else may have written the same."""
    now = [0.0]
    attributions = Attributions(lambda: now[0])
    attributions.register(b"a", API)
    attributions.register(b"b", API)
    now[0] = EXPIRES_AFTER_S - 1
    assert attributions.origin_of(b"a") is API

    now[0] = EXPIRES_AFTER_S
    assert attributions.origin_of(b"b") is None
    assert EXPIRES_AFTER_S == 600


def test_announcement_can_be_withdrawn() -> None:
    """Where the document could not be written."""
    attributions = Attributions(lambda: 0.0)
    attributions.register(b"a", API)
    attributions.withdraw(b"a")
    attributions.withdraw(b"never announced")

    assert attributions.origin_of(b"a") is None
