"""Node type `respond`: end the graph with an answer."""

from collections.abc import Iterator, Mapping
from typing import ClassVar, Literal

import attrs

from vsr.codec import reply_forms, reply_streams
from vsr.codec.chat_reply import Reply, ReplyUsage, ToolCall
from vsr.codec.tagged_tool_call import find_tagged_call, with_tagged_call
from vsr.graph.aggregate.collect_choices import Choice
from vsr.graph.block import Answer, Node
from vsr.graph.context import NodeContext
from vsr.graph.env import Bound, Env
from vsr.graph.suspend.record import Keeps
from vsr.registry import Extension

_NANO = 1_000_000_000


@attrs.frozen
class RespondNode:
    """Answers the client, whole or streamed as the client asked, with what `from` refers to."""

    keeps: ClassVar[Keeps] = "nothing"
    from_: Reply | str | tuple[Reply | Choice, ...]
    """A reply, a text, or replies that become one choice each."""
    id_prefix: str = "chatcmpl-graph"
    model: str | None = None
    """None: the model of the reply, of the last one where there are several."""
    stream_model: str | tuple[str, ...] | None = None
    """What a stream says instead; None: the same."""
    usage: ReplyUsage | None = None
    """None: the sum over the calls that count."""
    stream_usage: bool = True
    """Whether a client that asks for usage on streams gets it."""
    chunk_characters: int | None = 50
    """Of a stream that the graph makes; 0: all of it at once."""
    trace_name: str | None = None
    trace: object = None
    """One more top-level member, on the first chunk of a stream; null: none."""
    tool_calls: Literal["all", "first", "drop"] = "all"
    """Which of a reply's tool calls a stream has; `drop`: none, whole answers included."""
    finish_first_only: bool = False
    """Whether only the first choice's finish reason is made to tell of tool calls."""
    tagged_tool_calls: bool = False
    """Whether a call written into the text, between tags, becomes one."""
    models_used: tuple[str, ...] | None = None
    """For diagnostic headers; None: of the calls that count."""
    iterations: int | None = None

    @staticmethod
    def faults(env: Env, bound: Mapping[str, Bound]) -> Iterator[str]:
        """Yield what is wrong with it where it stands."""
        del bound
        if not env.may_respond:
            yield "a branch of a parallel step cannot end the graph"

    @staticmethod
    def always_ends(bound: Mapping[str, Bound]) -> bool:
        """Return that nothing behind it in its list is reached."""
        del bound
        return True

    async def run(self, ctx: NodeContext) -> Answer:
        """Return the answer; the graph ends here."""
        run, request = ctx.run, ctx.inputs.request
        is_stream = request.is_streaming
        unix_ns = int(run.unix() * _NANO)
        fresh_id = f"chatcmpl-tool-{unix_ns}"
        reply = self._reply(fresh_id)
        models, iterations = run.account.models_used, run.account.iterations
        answer = self._answer(ctx, reply, unix_ns, is_stream=is_stream)
        if not is_stream:
            body = self._whole(answer, reply)
        else:
            body = self._stream(answer, reply, fresh_id)
        return Answer(
            200,
            body,
            is_stream=is_stream,
            value=self.from_,
            model=self.model or reply.model,
            models_used=tuple(models) if self.models_used is None else self.models_used,
            iterations=iterations if self.iterations is None else self.iterations,
            usage=self.usage or run.account.usage,
        )

    def _reply(self, fresh_id: str) -> Reply:
        """Return the one reply, or what stands for several."""
        if isinstance(self.from_, str):
            return Reply("", self.from_)
        if not isinstance(self.from_, Reply):
            return Reply(self.from_[-1].model if self.from_ else "")
        reply = self.from_
        if not self.tagged_tool_calls or reply.has_tool_calls or reply.is_stream:
            return reply
        call = find_tagged_call(reply.content, fresh_id=fresh_id)
        if call is None:
            return reply
        return Reply(
            reply.model,
            tool_calls=(call,),
            has_tool_calls=True,
            body=with_tagged_call(reply.body, call),
        )

    def _answer(
        self, ctx: NodeContext, reply: Reply, unix_ns: int, *, is_stream: bool
    ) -> reply_forms.Answer:
        contents: tuple[str, ...] = (reply.content,)
        if isinstance(self.from_, tuple):
            contents = tuple(each.content for each in self.from_)
        model = self.model or reply.model
        extra = {}
        if self.trace_name is not None and self.trace is not None:
            extra[self.trace_name] = self.trace
        return reply_forms.Answer(
            id=f"{self.id_prefix}-{unix_ns // _NANO if is_stream else unix_ns}",
            created=unix_ns // _NANO,
            model=self._stream_model(model) if is_stream else model,
            contents=contents,
            usage=self.usage or ctx.run.account.usage,
            extra=extra,
            shows_usage=self.stream_usage and ctx.inputs.request.wants_usage,
        )

    def _stream_model(self, model: str) -> str:
        told = self.stream_model or model
        return told if isinstance(told, str) else ",".join(told)

    def _whole(self, answer: reply_forms.Answer, reply: Reply) -> bytes:
        if self._has_calls(reply):
            return reply_forms.render_kept(answer, reply.body, first_only=self.finish_first_only)
        return reply_forms.render_completion(answer)

    def _stream(self, answer: reply_forms.Answer, reply: Reply, fresh_id: str) -> bytes:
        if reply.is_stream:
            return reply_streams.pass_stream(answer, reply.body)
        if isinstance(self.from_, tuple):
            return reply_streams.stream_choices(answer)
        if not self._has_calls(reply):
            pieces = self.chunk_characters or None
            return reply_streams.stream_content(answer, piece_characters=pieces)
        if self.tool_calls == "first":
            first: ToolCall = reply.tool_calls[0]
            return reply_streams.stream_calls(
                answer, reply_streams.first_call(first, fresh_id=fresh_id)
            )
        return reply_streams.stream_calls(answer, reply_streams.received_calls(reply.body))

    def _has_calls(self, reply: Reply) -> bool:
        return reply.has_tool_calls and self.tool_calls != "drop"


RESPOND = Extension[Node](name="respond", config=RespondNode)
