"""Errors in the form that OpenAI clients read."""

import msgspec

from vsr.errors import VsrError


def openai_error(error: VsrError) -> bytes:
    """Return the body: all four members, in the order of the reference's parity records."""
    param = getattr(error, "param", None)
    members = {"type": error.type, "code": error.code, "message": str(error), "param": param}
    return msgspec.json.encode({"error": members})
