"""Where the management API is to listen: what the document says, and the command line before it."""

import msgspec

from vsr.config.attempt import Code, Reason, Stage
from vsr.resources.listener import ListenerTls
from vsr.resources.management import Management, is_loopback
from vsr.resources.snapshot import Snapshot

PLACE = "global.services.management_api"


class Binding(msgspec.Struct, frozen=True):
    """Where the management API listens."""

    address: str
    port: int
    is_flag: bool
    """Whether the command line says so; then the document does not."""
    tls: ListenerTls | None = None
    """Of the document always; None: clear text."""

    @classmethod
    def of(cls, management: Management, flag: tuple[str, int] | None) -> "Binding | None":
        """Return where it listens; None: nowhere.

        Args:
            management: what the document says.
            flag: what the command line says; None: nothing, port 0: nowhere.
        """
        address, port = (management.address, management.port) if flag is None else flag
        return cls(address, port, flag is not None, management.tls) if port else None

    def after(self, management: Management) -> "Binding":
        """Return where it listens under another configuration."""
        if self.is_flag:
            return msgspec.structs.replace(self, tls=management.tls)
        return Binding(management.address, management.port, is_flag=False, tls=management.tls)

    def check(self, snapshot: Snapshot) -> tuple[Reason, ...]:
        """Return why the API cannot be where another configuration wants it, binding nothing."""
        management = snapshot.management
        wanted, reasons = self.after(management), []
        is_guarded = management.is_remote and management.asks_token
        if not is_loopback(wanted.address) and not is_guarded:
            what = (
                "the management API is bound to an address that others reach, which needs "
                "remote_exposure: true and auth with mode: bearer"
            )
            reasons.append(Reason(Stage.VALIDATE, Code.INVALID_RESOURCE, what, PLACE))
        return tuple(reasons)
