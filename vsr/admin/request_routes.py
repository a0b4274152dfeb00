"""The endpoints about requests; our addition."""

import msgspec

from vsr.admin.request_reads import DEFAULT_LIMIT, MAX_LIMIT, RequestReads
from vsr.admin.routes import Parameter, Route, read
from vsr.routing.request_views import RequestDetail, RequestList

_PATH, _PERMISSION = "/api/v1/requests", "requests.read"
_LIMIT = f"of each list, 1 to {MAX_LIMIT}; {DEFAULT_LIMIT} if it is left out"
_START = "of the request, where several have the id; the newest if it is left out"
_WHOLE = {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT}


def request_routes(reads: RequestReads) -> list[Route]:
    """Return the endpoints."""
    every = "Requests under way, and the last that ended"
    one = "Why and how a request was served"
    return [
        msgspec.structs.replace(
            read(_PATH, every, reads.all, RequestList, _PERMISSION),
            query=(
                Parameter("limit", {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT}, _LIMIT),
            ),
        ),
        msgspec.structs.replace(
            read(f"{_PATH}/{{id}}", one, reads.one, RequestDetail, _PERMISSION),
            query=(Parameter("start_time", {"type": "string", "minLength": 1}, _START),),
        ),
    ]
