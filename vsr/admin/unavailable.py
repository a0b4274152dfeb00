"""Endpoints of the reference that need what this version does not have: models, stores, learning.

They are permitted and refused like all others, so that a client is told what is missing and not
that it asks at the wrong place. Source of paths and permissions: phases-and-plugins 11.3; of
codes: 11.6 and 11.7, where there is one.
"""

from collections.abc import Iterator
from typing import NoReturn

from vsr.admin.answer import Refusal
from vsr.admin.call import Call, Handler
from vsr.admin.routes import Route

_CLASSIFY = " ".join(
    f"/api/v1/classify/{each}"
    for each in ["intent", "pii", "security", "fact-check", "user-feedback", "combined", "batch"]
)
_TABLE = f"""
classify.invoke MODEL_UNAVAILABLE POST {_CLASSIFY}
classify.invoke MODEL_UNAVAILABLE POST /api/v1/nli /api/v1/embeddings /api/v1/similarity
classify.invoke MODEL_UNAVAILABLE POST /api/v1/similarity/batch
config.read MODEL_UNAVAILABLE GET /api/v1/embeddings/models /info/models /info/classifier
learning.ingest NO_ROUTER_LEARNING_RUNTIME POST /v1/router/outcomes
cache.read CACHE_UNAVAILABLE GET /api/v1/response-cache/capabilities /api/v1/response-cache/health
cache.read CACHE_UNAVAILABLE GET /api/v1/response-cache/stats /api/v1/response-cache/audit
cache.manage CACHE_UNAVAILABLE POST /api/v1/response-cache/test /api/v1/response-cache/flush
cache.invalidate CACHE_UNAVAILABLE POST /api/v1/response-cache/invalidate
data.read STORE_UNAVAILABLE GET /v1/memory /api/v1/storage/vector-stores /v1/files
data.write STORE_UNAVAILABLE DELETE /v1/memory
data.write STORE_UNAVAILABLE POST /api/v1/storage/vector-stores /v1/files
"""
_WHY = {
    "MODEL_UNAVAILABLE": "No model is loaded: this version runs none itself.",
    "NO_ROUTER_LEARNING_RUNTIME": "Nothing learns from outcomes in this version.",
    "CACHE_UNAVAILABLE": "There is no response cache in this version.",
    "STORE_UNAVAILABLE": "There is no store of that kind in this version.",
}


def unavailable_routes() -> Iterator[Route]:
    """Yield these endpoints."""
    for line in _TABLE.strip().splitlines():
        permission, code, method, *paths = line.split()
        for path in paths:
            summary = f"Not in this version ({code})"
            yield Route(method, path, permission, summary, _refusing(code), {}, is_available=False)


def _refusing(code: str) -> Handler:
    async def refuse(_call: Call) -> NoReturn:  # noqa: ASYNC124  # as the others are
        raise Refusal(503, code, _WHY[code])

    return refuse
