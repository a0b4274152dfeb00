"""Which word counts on a stream's comments."""

import pytest

from vsr.resources.stream_comments import NO_COMMENTS, StreamComments


@pytest.mark.parametrize(
    ("near", "far", "counts"),
    [
        (NO_COMMENTS, NO_COMMENTS, NO_COMMENTS),
        (
            NO_COMMENTS,
            StreamComments(progress=True, keep_alive_s=9),
            StreamComments(progress=True, keep_alive_s=9),
        ),
        (
            StreamComments(progress=False),
            StreamComments(progress=True, keep_alive_s=9),
            StreamComments(progress=False, keep_alive_s=9),
        ),
        (
            StreamComments(keep_alive_s=0),
            StreamComments(progress=True, keep_alive_s=9),
            StreamComments(progress=True, keep_alive_s=0),
        ),
        (
            StreamComments(progress=True, keep_alive_s=3),
            NO_COMMENTS,
            StreamComments(progress=True, keep_alive_s=3),
        ),
    ],
)
def test_nearer_word_counts_key_by_key(
    near: StreamComments, far: StreamComments, counts: StreamComments
) -> None:
    """What it does not say is as the other one has it; off is a word, too."""
    assert near.over(far) == counts


def test_off_is_nothing() -> None:
    """Whether it is written or not."""
    assert not NO_COMMENTS.is_any
    assert not StreamComments(progress=False, keep_alive_s=0).is_any
    assert StreamComments(progress=True).is_any
    assert StreamComments(keep_alive_s=1).is_any
