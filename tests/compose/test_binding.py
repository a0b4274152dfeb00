"""Where the management API is to listen."""

import msgspec
import pytest

from vsr.compose.binding import Binding
from vsr.config.attempt import Code
from vsr.resources.listener import ListenerTls
from vsr.resources.management import Management
from vsr.resources.snapshot import Snapshot

REMOTE = Management("0.0.0.0", 9000, is_remote=True, asks_token=True)
TLS = ListenerTls("a.crt", "a.key")


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
        (Binding("127.0.0.1", 8080, is_flag=False), Management(port=1), []),
        (Binding("127.0.0.1", 8080, is_flag=False), Management("::1"), []),
        (Binding("127.0.0.1", 8080, is_flag=False), REMOTE, []),
        (
            Binding("127.0.0.1", 8080, is_flag=False),
            Management("0.0.0.0", 1, is_remote=True),
            [Code.INVALID_RESOURCE],
        ),
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
    """Whoever says where it is; a change that takes them away is refused."""
    reasons = binding.check(Snapshot("x", management=management))

    assert [reason.code for reason in reasons] == codes


def test_flag_stays_where_the_document_moves() -> None:
    """TLS is the document's all the same."""
    moved = msgspec.structs.replace(REMOTE, tls=TLS)

    assert Binding("127.0.0.1", 1, is_flag=True).after(moved) == Binding(
        "127.0.0.1", 1, is_flag=True, tls=TLS
    )
    assert Binding("127.0.0.1", 1, is_flag=False).after(moved) == Binding(
        "0.0.0.0", 9000, is_flag=False, tls=TLS
    )
