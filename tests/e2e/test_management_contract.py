"""The management API does what its OpenAPI document says, by cases made of the document."""

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
import trio
from schemathesis.config import SchemathesisConfig
from schemathesis.engine import events, from_schema

from tests.fakes.configuration import Desk
from tests.fakes.served_api import ServedApi
from vsr.resources.management import Management, Token

TOKEN = "token-of-an-administrator"
ENOUGH = 500
"""Cases, without which something was not tested."""


def settings(examples: int, token: str) -> dict[str, object]:
    """Return how cases are made: always the same ones."""
    auth = {"auth": {"openapi": {"bearer": {"bearer": token}}}} if token else {}
    return {
        **auth,
        "workers": 1,
        "continue-on-failure": True,
        "generation": {
            "max-examples": examples,
            "deterministic": True,
            "database": "none",
            "mode": "all",
            "no-shrink": True,
        },
        "phases": {
            # TRACE and CONNECT end in front of the API, with every listener.
            "coverage": {"unexpected-methods": ["get", "put", "post", "patch", "delete", "query"]},
            "stateful": {"enabled": True, "max-steps": 4},
        },
        "checks": {
            # 503 is an answer of this API; that it is announced is checked all the same.
            "not_a_server_error": {"expected-statuses": ["2xx", "3xx", "4xx", "503"]},
            # A good request for what has changed, or without a precondition, is good.
            "positive_data_acceptance": {
                "expected-statuses": ["2xx", "401", "403", "404", "409", "412", "503"]
            },
            "missing_required_header": {"expected-statuses": ["400", "401", "403", "428"]},
        },
    }


def failures_of(url: str, examples: int, token: str) -> tuple[list[str], int]:
    """Return what does not hold, and how many cases were tried; blocks."""
    config = SchemathesisConfig.from_dict(settings(examples, token))
    headers = {"authorization": f"Bearer {token}"}
    schema = schemathesis.openapi.from_url(f"{url}/openapi.json", config=config, headers=headers)
    found: list[str] = []
    cases = 0
    for event in from_schema(schema).execute():
        match event:
            case events.ScenarioFinished():
                cases += len(event.recorder.cases)
                found += _failures(event.recorder)
            case events.NonFatalError() | events.FatalError():
                found.append(f"error: {getattr(event, 'value', event)}")
    return found, cases


def _failures(recorder: Any) -> Iterator[str]:  # noqa: ANN401  # of the library
    for case_id, checks in recorder.checks.items():
        for check in checks:
            if check.failure_info is not None:
                case = recorder.cases[case_id].value
                yield f"{case.method} {case.formatted_path} {check.name}: {check.failure_info}"


@pytest.mark.parametrize("is_guarded", [False, True], ids=["open", "with tokens"])
async def test_api_is_as_it_says(nursery: trio.Nursery, *, is_guarded: bool) -> None:
    """Whatever is asked: status, body, fields, and what is refused."""
    desk = Desk()
    if is_guarded:
        desk = Desk(environ={"ROOT": TOKEN})
        tokens = (Token("ROOT", "admin"),)
        desk.configuration.management = Management(asks_token=True, tokens=tokens)
    api = ServedApi(desk)
    await nursery.start(api.run)
    asked = (api.url, 5, TOKEN) if is_guarded else (api.url, 12, "")

    with trio.fail_after(120):
        found, cases = await trio.to_thread.run_sync(failures_of, *asked)
    api.stop()

    assert found == []
    assert cases > ENOUGH
