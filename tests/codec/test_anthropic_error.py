"""Errors for Anthropic clients."""

import json

import pytest

from vsr.codec.anthropic.error import anthropic_backend_error, anthropic_error
from vsr.errors import EndpointNotFound, InvalidRequest, RoutingFailed, VsrError


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (403, "permission_error"),
        (404, "not_found_error"),
        (413, "invalid_request_error"),
        (418, "api_error"),
        (422, "invalid_request_error"),
        (429, "rate_limit_error"),
        (500, "api_error"),
        (503, "overloaded_error"),
        (529, "overloaded_error"),
    ],
)
def test_backend_error_has_the_type_of_its_status(status: int, kind: str) -> None:
    """The text is the backend's, whose own type is of the other protocol."""
    body = anthropic_backend_error(status, b'{"error":{"message":"m","type":"server_error"}}')

    assert json.loads(body) == {"type": "error", "error": {"type": kind, "message": "m"}}
    assert body.startswith(b'{"type":"error","error":{"type":')


def test_anthropic_backend_error_keeps_its_type() -> None:
    """It is in the client's protocol already."""
    body = anthropic_backend_error(
        400, b'{"type":"error","error":{"type":"billing_error","message":"m"}}'
    )

    assert json.loads(body)["error"] == {"type": "billing_error", "message": "m"}


def test_backend_error_without_text_says_the_status() -> None:
    """An error never becomes an empty message."""
    error = json.loads(anthropic_backend_error(500, b""))["error"]

    assert error == {"type": "api_error", "message": "The backend answered with status 500."}


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (InvalidRequest("m"), "invalid_request_error"),
        (EndpointNotFound(), "not_found_error"),
        (RoutingFailed(), "api_error"),
    ],
)
def test_router_error_is_in_the_same_envelope(error: VsrError, kind: str) -> None:
    """Anthropic SDKs read nothing else."""
    members = json.loads(anthropic_error(error))["error"]

    assert members == {"type": kind, "message": str(error)}
