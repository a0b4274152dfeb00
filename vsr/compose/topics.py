"""What a supervisor asks its workers on behalf of the management API, and what they answer."""

import msgspec

from vsr.admin.ports import ServingView
from vsr.admin.quarantine import Quarantined
from vsr.admin.views import BackendsView

VIEW = "view"
"""Answered by a `ServingView` of the worker alone."""
BACKENDS = "backends"
"""Answered by a `BackendsView`."""
QUARANTINE = "quarantine"
"""Lets the worker know a `Quarantined`; the answer is empty."""

encode = msgspec.msgpack.Encoder().encode
decode_view = msgspec.msgpack.Decoder(ServingView).decode
decode_backends = msgspec.msgpack.Decoder(BackendsView).decode
decode_quarantined = msgspec.msgpack.Decoder(Quarantined).decode
