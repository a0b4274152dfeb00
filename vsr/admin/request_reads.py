"""Requests under way and ended: what they are, and why each was served as it was."""

import attrs

from vsr.admin.answer import Answer, Invalid, Refusal, told
from vsr.admin.call import Call
from vsr.admin.ports import Serving

DEFAULT_LIMIT, MAX_LIMIT = 50, 1_000


@attrs.frozen
class RequestReads:
    """Handlers about requests; they change nothing."""

    serving: Serving

    async def all(self, call: Call) -> Answer:
        """Answer `GET /api/v1/requests`."""
        text = call.query.get("limit", str(DEFAULT_LIMIT))
        # A longer number is out of range, whatever it is.
        limit = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0  # noqa: PLR2004
        if not 1 <= limit <= MAX_LIMIT:
            raise Invalid(f"limit must be a whole number from 1 to {MAX_LIMIT}.")
        return told(await self.serving.requests(limit))

    async def one(self, call: Call) -> Answer:
        """Answer `GET /api/v1/requests/{id}`."""
        found = await self.serving.request(call.parameters["id"], call.query.get("start_time", ""))
        if found is None:
            message = "No request of that id is under way or among the last that ended."
            raise Refusal(404, "REQUEST_NOT_FOUND", message)
        return told(found)
