"""The HTTP/2 library, set up so that it ends no connection over what is one stream's fault."""

from collections.abc import Iterable
from typing import Final

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.settings import SettingCodes, Settings
from hpack import Decoder, Encoder
from hpack.struct import HeaderTuple

from vsr.headers import HeaderLine
from vsr.http.framing import MAX_FIELDS, MAX_HEAD_BYTES
from vsr.http.h2_frames import MAX_FRAME_BYTES, PREFACE

MAX_STREAMS = 250
"""Requests at a time on one connection. Source: the default of Go's server."""
STREAM_WINDOW_BYTES = 262_144
"""Body bytes of one stream that are held unread."""
CONNECTION_WINDOW_BYTES = 1_048_576
"""Body bytes on their way on all streams: given back on arrival, so that a stream whose body
nobody reads holds up no other."""
LAST_POSSIBLE_STREAM = 2**31 - 1
_TABLE_BYTES = 4096
"""What we remember of a client's fields."""
_MAX_LIST_BYTES = MAX_HEAD_BYTES + 32 * MAX_FIELDS
"""A head within our limits as compression counts it, 32 bytes a field."""
_DECODED_BYTES = 2 * _MAX_LIST_BYTES
"""Up to here a head that is too long is answered; beyond, nobody unpacks it."""
_NO_TABLE: Final = b"\x20"
"""Tells that the table has no room. Source: RFC 7541 section 6.3."""
_KNOWN_BLOCKS = 64
_KNOWN_LINES = 1024
_LONGEST_KNOWN_BYTES = 512
_ADVERTISED: Final = {
    SettingCodes.MAX_CONCURRENT_STREAMS: MAX_STREAMS,
    SettingCodes.INITIAL_WINDOW_SIZE: STREAM_WINDOW_BYTES,
    SettingCodes.MAX_FRAME_SIZE: MAX_FRAME_BYTES,
    SettingCodes.MAX_HEADER_LIST_SIZE: _MAX_LIST_BYTES,
    SettingCodes.HEADER_TABLE_SIZE: _TABLE_BYTES,
}


class FieldKeeper(Decoder):
    """Unpacks field lists and shows none to the library: a bad field is one stream's fault.

    A client that says the same again packs it in the same bytes. Those are unpacked once, as long
    as the table that they refer to stays as it is.
    """

    fields: Iterable[HeaderTuple] = ()

    def __init__(self, max_header_list_size: int) -> None:
        super().__init__(max_header_list_size)
        self._known: dict[bytes, Iterable[HeaderTuple]] = {}

    def decode(self, data: bytes, raw: bool = False) -> Iterable[HeaderTuple]:  # noqa: FBT001, FBT002  # the library's signature
        """Keep what `data` unpacks to."""
        del raw
        known = self._known.get(data)
        if known is not None:
            self.fields = known
            return ()
        before = self._table_state()
        self.fields = super().decode(data, raw=True)
        if before != self._table_state():
            self._known.clear()
        elif len(data) <= _LONGEST_KNOWN_BYTES and len(self._known) < _KNOWN_BLOCKS:
            self._known[data] = self.fields
        return ()

    def _table_state(self) -> tuple[int, int, int]:
        """Return what changes with every change of the table: a new entry is its first."""
        table = self.header_table
        entries = table.dynamic_entries
        return table.maxsize, len(entries), id(entries[0]) if entries else 0


class _PackedLines(dict[HeaderLine, bytes]):
    """Field lines to their packed form, which refers to no table."""

    def __init__(self) -> None:
        self._packer = _without_table()

    def __missing__(self, line: HeaderLine) -> bytes:
        packed = self._packer.encode([line])
        if len(packed) <= _LONGEST_KNOWN_BYTES:
            if len(self) >= _KNOWN_LINES:
                self.clear()
            self[line] = packed
        return packed


class FieldWriter(Encoder):
    """Packs field lists line by line, without a table that both sides would have to keep."""

    def __init__(self) -> None:
        super().__init__()
        self.header_table_size = 0
        self._packed = _PackedLines()

    def encode(self, headers: Iterable[HeaderLine], huffman: bool = True) -> bytes:  # type: ignore[override]  # noqa: FBT001, FBT002  # only we call it
        """Return the packed list; wherever a table's size may be told, it is none."""
        del huffman
        block = b"".join(map(self._packed.__getitem__, headers))
        if not self.table_size_changes:
            return block
        self.table_size_changes = []
        return _NO_TABLE + block


class Library(H2Connection):
    """The library's server side, our settings sent and the client's preface taken as read."""

    MAX_CLOSED_STREAMS = 4 * MAX_STREAMS
    """How a stream closed is kept for frames that crossed with its end."""

    def __init__(self) -> None:
        super().__init__(
            H2Configuration(
                client_side=False,
                header_encoding=None,
                validate_inbound_headers=False,
                normalize_inbound_headers=False,
                validate_outbound_headers=False,
                normalize_outbound_headers=False,
            )
        )
        self.decoder = self.keeper = FieldKeeper(_DECODED_BYTES)
        self.encoder = FieldWriter()
        self.local_settings = Settings(client=False, initial_values=_ADVERTISED)
        self.initiate_connection()
        self.increment_flow_control_window(
            CONNECTION_WINDOW_BYTES - self.inbound_flow_control_window
        )
        # One stream too many would end the connection: that limit is kept by refusing the stream.
        unbounded = {**_ADVERTISED, SettingCodes.MAX_CONCURRENT_STREAMS: LAST_POSSIBLE_STREAM}
        self.local_settings = Settings(client=False, initial_values=unbounded)
        self.receive_data(PREFACE)


def _without_table() -> Encoder:
    packer = Encoder()
    packer.header_table_size = 0
    packer.encode([])  # takes up the change of size, which would stand before the first line
    return packer
