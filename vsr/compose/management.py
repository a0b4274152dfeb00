"""What loads the management API of a process."""

import os
import secrets
import time
from collections.abc import Callable

from vsr.admin.audit import Audit
from vsr.admin.ports import Configuration, Serving
from vsr.gateway.answering import Answerer


def app_loader(
    configuration: Configuration, serving: Serving, audit: Audit
) -> Callable[[], Answerer]:
    """Return what loads the API: for its first request, since nobody may ever ask."""

    def load() -> Answerer:
        from importlib.metadata import version  # noqa: PLC0415

        from vsr.admin.app import App, Surroundings  # noqa: PLC0415

        around = Surroundings(os.environ, time.time, _new_id, version("vllm-sr"))
        return App(configuration, serving, audit, around).answer

    return load


def _new_id() -> str:
    return secrets.token_hex(16)
