"""The management API: its address, and who may be there."""

import pytest

from vsr.compose.management import Binding
from vsr.config.attempt import Code
from vsr.resources.management import Management
from vsr.resources.snapshot import Snapshot

REMOTE = Management("0.0.0.0", 9000, is_remote=True, asks_token=True)


@pytest.mark.parametrize(
    ("flag", "binding"),
    [
        (None, Binding("0.0.0.0", 9000, is_flag=False)),
        (("127.0.0.1", 8081), Binding("127.0.0.1", 8081, is_flag=True)),
        (("", 0), None),
        (("127.0.0.1", 0), None),
    ],
)
def test_flag_goes_before_the_document(
    flag: tuple[str, int] | None, binding: Binding | None
) -> None:
    """And switches it off."""
    assert Binding.of(REMOTE, flag) == binding


@pytest.mark.parametrize(
    ("binding", "management", "codes"),
    [
        (Binding("127.0.0.1", 8080, is_flag=False), Management(), []),
        (Binding("127.0.0.1", 8080, is_flag=False), Management(port=1), [Code.RESTART_REQUIRED]),
        (Binding("127.0.0.1", 8080, is_flag=True), Management(port=1), []),
        (Binding("0.0.0.0", 9000, is_flag=False), REMOTE, []),
        (Binding("0.0.0.0", 1, is_flag=True), Management(), [Code.INVALID_RESOURCE]),
        (Binding("0.0.0.0", 1, is_flag=True), Management(is_remote=True), [Code.INVALID_RESOURCE]),
        (Binding("0.0.0.0", 1, is_flag=True), Management(asks_token=True), [Code.INVALID_RESOURCE]),
        (Binding("::1", 1, is_flag=True), Management(), []),
    ],
)
def test_address_that_others_reach_needs_tokens_and_leave(
    binding: Binding, management: Management, codes: list[Code]
) -> None:
    """Whoever says where it is; a change of the document that takes them away is refused."""
    reasons = binding.check(Snapshot("x", management=management))

    assert [reason.code for reason in reasons] == codes
