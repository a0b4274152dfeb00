"""The HTTP/2 library's client side, set up like its server side: see `h2_library`."""

from collections.abc import Iterable
from typing import Final

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.settings import SettingCodes, Settings
from hpack.struct import HeaderTuple

from vsr.http.framing import MAX_FIELDS, MAX_HEAD_BYTES
from vsr.http.h2_frames import MAX_FRAME_BYTES
from vsr.http.h2_library import (
    CONNECTION_WINDOW_BYTES,
    STREAM_WINDOW_BYTES,
    FieldKeeper,
    FieldWriter,
)

_TABLE_BYTES = 4096
"""What we remember of a server's fields."""
_MAX_LIST_BYTES = MAX_HEAD_BYTES + 32 * MAX_FIELDS
_DECODED_BYTES = 2 * _MAX_LIST_BYTES
_INFORMATIONAL: Final = (HeaderTuple(b":status", b"100"),)
_ADVERTISED: Final = {
    SettingCodes.ENABLE_PUSH: 0,
    SettingCodes.INITIAL_WINDOW_SIZE: STREAM_WINDOW_BYTES,
    SettingCodes.MAX_FRAME_SIZE: MAX_FRAME_BYTES,
    SettingCodes.MAX_HEADER_LIST_SIZE: _MAX_LIST_BYTES,
    SettingCodes.HEADER_TABLE_SIZE: _TABLE_BYTES,
}


class ResponseKeeper(FieldKeeper):
    """Shows the library no field, but whether a response is an informational one."""

    is_last = False
    """Whether nothing follows on the stream: an informational one would be a fault."""

    def decode(self, data: bytes, raw: bool = False) -> Iterable[HeaderTuple]:  # noqa: FBT001, FBT002  # the library's signature
        """Keep what `data` unpacks to."""
        super().decode(data, raw)
        if self.is_last:
            return ()
        for name, value in self.fields:
            return _INFORMATIONAL if name == b":status" and value[:1] == b"1" else ()
        return ()


class ClientLibrary(H2Connection):
    """The library's client side; our preface and settings are its first output."""

    MAX_CLOSED_STREAMS = 4096
    """How a stream closed is kept for frames that crossed with its end."""

    def __init__(self) -> None:
        super().__init__(
            H2Configuration(
                client_side=True,
                header_encoding=None,
                validate_inbound_headers=False,
                normalize_inbound_headers=False,
                validate_outbound_headers=False,
                normalize_outbound_headers=False,
            )
        )
        self.decoder = self.keeper = ResponseKeeper(_DECODED_BYTES)
        self.encoder = FieldWriter()
        self.local_settings = Settings(client=True, initial_values=_ADVERTISED)
        self.initiate_connection()
        self.increment_flow_control_window(
            CONNECTION_WINDOW_BYTES - self.inbound_flow_control_window
        )
