"""The management API of a process: where it is bound, and what runs there."""

import os
import secrets
import time

import attrs
import msgspec
import trio

from vsr.admin.audit import Audit
from vsr.admin.ports import Configuration, Serving
from vsr.compose.beside import Words, serve_beside
from vsr.config.attempt import Code, Reason, Stage
from vsr.errors import ConfigRejected, Problem
from vsr.gateway.answering import Answerer, AnsweringFront
from vsr.network.port import Network
from vsr.resources.listener import Listener
from vsr.resources.management import Management, is_loopback
from vsr.resources.snapshot import Snapshot
from vsr.workers.components import Components

_IDLE_S = 60.0
"""Source: the reference's listener."""
_PATH = "global.services.management_api"
_WORDS = Words("the management API answers", "the management API cannot be reached")


class Binding(msgspec.Struct, frozen=True):
    """Where the management API listens."""

    address: str
    port: int
    is_flag: bool
    """Whether the command line says so; then the document does not."""

    @classmethod
    def of(cls, management: Management, flag: tuple[str, int] | None) -> "Binding | None":
        """Return where it listens; None: nowhere.

        Args:
            management: what the document says.
            flag: what the command line says; None: nothing, port 0: nowhere.
        """
        if flag is None:
            return cls(management.address, management.port, is_flag=False)
        address, port = flag
        return cls(address, port, is_flag=True) if port else None

    @classmethod
    def checked(cls, snapshot: Snapshot, flag: tuple[str, int] | None) -> "Binding | None":
        """Return where it listens under the configuration that a process begins with.

        Raises:
            ConfigRejected: it may not listen there.
        """
        binding = cls.of(snapshot.management, flag)
        if binding is not None and (reasons := binding.check(snapshot)):
            raise ConfigRejected([Problem(each.path, each.message) for each in reasons])
        return binding

    def check(self, snapshot: Snapshot) -> tuple[Reason, ...]:
        """Return why the API cannot go on as it is bound under another configuration."""
        management = snapshot.management
        reasons = []
        moved = (management.address, management.port) != (self.address, self.port)
        if moved and not self.is_flag:
            what = "the management API is bound when the Router starts, so restart it to apply this"
            reasons.append(Reason(Stage.VALIDATE, Code.RESTART_REQUIRED, what, _PATH))
        is_guarded = management.is_remote and management.asks_token
        if not is_loopback(self.address) and not is_guarded:
            what = (
                "the management API is bound to an address that others reach, which needs "
                "remote_exposure: true and auth with mode: bearer"
            )
            reasons.append(Reason(Stage.VALIDATE, Code.INVALID_RESOURCE, what, _PATH))
        return tuple(reasons)


@attrs.frozen
class ManagementApi:
    """The API, as it runs beside what it is about."""

    network: Network
    binding: Binding
    configuration: Configuration
    serving: Serving
    audit: Audit

    async def serve(self, tasks: trio.Nursery, components: Components) -> None:
        """Serve it in `tasks`; without a free address the Router serves all the same."""
        binding = self.binding
        listener = Listener("management API", binding.address, binding.port, _IDLE_S)
        front = AnsweringFront(self._load)
        await serve_beside(self.network, front, listener, _WORDS, tasks, components)

    def _load(self) -> Answerer:
        # For the first request, in a thread: a Router that nobody manages need not load it.
        from importlib.metadata import version  # noqa: PLC0415

        from vsr.admin.app import App, Surroundings  # noqa: PLC0415

        around = Surroundings(os.environ, time.time, _new_id, version("vllm-sr"))
        return App(self.configuration, self.serving, self.audit, around).answer


def _new_id() -> str:
    return secrets.token_hex(16)
