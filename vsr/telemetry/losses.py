"""What could not be written where telemetry goes."""

import msgspec


class Losses(msgspec.Struct, frozen=True):
    """How a sink is doing."""

    is_losing: bool = False
    """Whether the last write failed."""
    times: int = 0
    """Writes that failed."""
    last: str = ""
    """Class of the last failure."""

    def failed(self, last: str) -> "Losses":
        """Return it with one more."""
        return Losses(is_losing=True, times=self.times + 1, last=last)

    def went_well(self) -> "Losses":
        """Return it after a write that did not fail."""
        return msgspec.structs.replace(self, is_losing=False) if self.is_losing else self
