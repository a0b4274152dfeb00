"""Error bodies of the OpenAI form."""

import json

import pytest
import yaml

from tests.reference_dir import reference_dir
from vsr.codec.error_body import openai_error
from vsr.codec.strict_json import invalid_json
from vsr.errors import EndpointNotFound, InvalidRequest, ModelNotFound, VsrError


@pytest.mark.parametrize(
    ("case", "phase", "error"),
    [
        ("invalid-json-body", "request_body", invalid_json()),
        (
            "missing-model-field",
            "request_body",
            InvalidRequest("model is required", code="model_required"),
        ),
        ("unknown-model", "request_body", ModelNotFound()),
        ("responses-api-not-enabled", "request_headers", EndpointNotFound()),
    ],
)
def test_error_body_is_the_parity_record(case: str, phase: str, error: VsrError) -> None:
    """Byte for byte: member order, null for unknown, no white space."""
    text = (reference_dir() / "parity-corpus" / "expected.yaml").read_text()
    immediate = yaml.safe_load(text)[case]["phases"][phase]["immediate"]

    body = openai_error(error)

    assert body.decode() == immediate["body"]
    assert error.status == immediate["status"]


def test_error_body_names_the_member_at_fault() -> None:
    """`param` is the member; text beyond ASCII and quotes survive."""
    body = openai_error(InvalidRequest('"é" is not a role', param="messages"))

    assert list(json.loads(body)["error"].items()) == [
        ("type", "invalid_request_error"),
        ("code", "invalid_request"),
        ("message", '"é" is not a role'),
        ("param", "messages"),
    ]
