"""How field lists are packed and unpacked."""

import pytest
from hpack import Decoder, Encoder
from hpack.exceptions import OversizedHeaderListError
from hypothesis import given
from hypothesis import strategies as st

from vsr.headers import HeaderLine
from vsr.http.h2_library import FieldKeeper, FieldWriter

LINES = st.tuples(
    st.sampled_from([b":status", b"content-type", b"x-a", b"x-b", b"set-cookie"]),
    st.one_of(st.sampled_from([b"200", b"text/plain", b""]), st.binary(max_size=20)),
)
LISTS = st.lists(st.lists(LINES, max_size=6), min_size=1, max_size=12)
LIMIT_BYTES = 100_000


@given(lists=LISTS, sizes=st.lists(st.sampled_from([0, 100, 4096]), max_size=12))
def test_packed_fields_unpack_to_what_they_were(
    lists: list[list[HeaderLine]], sizes: list[int]
) -> None:
    """For any client, whatever size it offers; it keeps nothing for us."""
    writer, client = FieldWriter(), Decoder()

    for number, fields in enumerate(lists):
        if number < len(sizes):
            writer.header_table_size = sizes[number]
            client.max_allowed_table_size = sizes[number]
            client.header_table_size = min(client.header_table_size, sizes[number])
        block = writer.encode(fields)
        assert [tuple(field) for field in client.decode(block, raw=True)] == fields

    assert len(client.header_table.dynamic_entries) == 0


@given(lists=LISTS, again=st.lists(st.integers(0, 11), max_size=12), indexed=st.booleans())
def test_repeated_blocks_unpack_like_new_ones(
    *, lists: list[list[HeaderLine]], again: list[int], indexed: bool
) -> None:
    """Even where the same bytes mean something else by now, since the table has changed."""
    client = Encoder()
    if not indexed:
        client.header_table_size = 0
    ours, theirs = FieldKeeper(LIMIT_BYTES), Decoder()

    for number in [*range(len(lists)), *again]:
        block = client.encode(lists[number % len(lists)])
        assert list(ours.decode(block)) == []
        assert list(ours.fields) == list(theirs.decode(block, raw=True))


@given(
    blocks=st.lists(
        st.sampled_from(
            [
                b"\x82",
                b"\xbe",
                b"\x40\x01x\x01y",
                b"\x20",
                b"\x3f\xe1\x1f\xbe",
                b"\x40\x01x\x01z",
                b"\x20\x3f\xe1\x1f",
                b"\xbf",
                b"\x21",
            ]
        ),
        max_size=20,
    )
)
def test_any_change_of_the_table_is_noticed(blocks: list[bytes]) -> None:
    """Entries that come and go, sizes that shrink and grow: bytes mean what they mean now."""
    ours, theirs = FieldKeeper(LIMIT_BYTES), Decoder()

    for block in blocks:
        results: list[list[object]] = []
        for decoder in (ours, theirs):
            try:
                fields = list(decoder.decode(block, raw=True))
                results.append([*(ours.fields if decoder is ours else fields)])
            except Exception as error:  # noqa: BLE001  # compared, whatever it is
                results.append([type(error)])
        assert results[0] == results[1]
        if results[0] and isinstance(results[0][0], type):
            return


def test_list_that_is_too_long_is_not_unpacked() -> None:
    """The library ends the connection over it."""
    keeper = FieldKeeper(1000)

    with pytest.raises(OversizedHeaderListError):
        keeper.decode(Encoder().encode([(b"x", b"y" * 1000)]))
