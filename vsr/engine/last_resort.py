"""The fixed answer of a decision none of whose models answered."""

import attrs

from vsr.codec.edits import Draft
from vsr.engine.endpoints import Protocol
from vsr.engine.plugins.fast_response import FastResponsePlugin
from vsr.engine.plugins.plugin import Site
from vsr.engine.response_phase import error_body, in_protocol, told_path
from vsr.errors import EveryModelFailed
from vsr.resources.plugin import FastResponse
from vsr.resources.reliability import LastResort
from vsr.routing.effect import HeaderEdit, ImmediateResponse

_FIRST_ERROR = 400
_JSON = HeaderEdit(b"content-type", b"application/json")
_OF_FAST_RESPONSE = b"x-vsr-fast-response"


@attrs.frozen
class LastResortAnswer:
    """Tells the author's text to a client: a model's answer, or an error if its status says so."""

    resort: LastResort
    site: Site = attrs.field(repr=False)
    _plugin: FastResponsePlugin = attrs.field(init=False, repr=False)

    @_plugin.default
    def _make_plugin(self) -> FastResponsePlugin:
        return FastResponsePlugin(FastResponse(self.resort.content), self.site)

    def answer(
        self, client: Protocol, draft: Draft, path: tuple[str, ...], unix_s: int
    ) -> ImmediateResponse:
        """Return the answer in the client's protocol.

        Args:
            client: what the client speaks.
            draft: its request, as a chat completion.
            path: models that were called, in order.
            unix_s: the time it was made.
        """
        status = self.resort.status
        if status >= _FIRST_ERROR:
            edits = (_JSON, *told_path(self.site.keystone(b"fallback"), path))
            error = EveryModelFailed(self.resort.content, status)
            return ImmediateResponse(status, edits, error_body(client, error))
        fixed = self._plugin.answer(draft, unix_s)
        is_stream = draft.raw("stream") == b"true"
        answer = in_protocol(client, fixed, path[0], is_stream=is_stream)
        edits = tuple(edit for edit in answer.edits if edit.name != _OF_FAST_RESPONSE)
        return ImmediateResponse(status, told_path(edits, path), answer.body)
