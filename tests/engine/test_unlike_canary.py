"""Whatever the backends of a model are: nothing of one reaches another."""

import json

import attrs
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.demo.raw_client import chat_body
from tests.engine.unlike import BUSY, check_canaries, fine
from tests.fakes.router import document_of, start_router
from tests.upstream.raw_backend import RawBackend, reply
from vsr.headers import HeaderLine
from vsr.network.memory import MemoryNetwork

PROVIDERS = ("vllm", "openai-compatible", "azure-openai", "anthropic-compatible", "xiaomi")
HEADERS = ("authorization", "api-key", "x-api-key", "x-token")
CLIENT: list[HeaderLine] = [(name.encode(), b"client-canary") for name in HEADERS]
USER: list[HeaderLine] = [(b"x-user-azure-openai-key", b"user-canary")]
PASSED = b"/v1/embeddings"


@attrs.frozen
class Kind:
    """One backend: its provider, what it has of its own, and how it answers."""

    provider: str
    has_base_path: bool
    has_key: bool
    auth_header: str | None
    has_headers: bool
    fails: bool
    weight: int

    def ref(self, name: str, port: int) -> str:
        """Return its entry in the document."""
        base = f"/{name}-canary" if self.has_base_path else ""
        members = {
            "name": name,
            "provider": self.provider,
            "base_url": f"http://{name}.test:{port}{base}",
            "weight": self.weight,
        }
        if self.has_key:
            members["api_key"] = f"{name}-canary-key"
        if self.auth_header is not None:
            members["auth_header"] = self.auth_header
        if self.has_headers:
            members["extra_headers"] = {"x-own": f"{name}-canary", f"x-{name}-canary": "1"}
        if self.provider == "azure-openai":
            members["api_version"] = f"{name}-canary"
        return json.dumps(members)


KINDS = st.builds(
    Kind,
    st.sampled_from(PROVIDERS),
    st.booleans(),
    st.booleans(),
    st.none() | st.sampled_from(HEADERS),
    st.booleans(),
    st.booleans(),
    st.integers(1, 3),
)


async def run(kinds: list[Kind], retries: int) -> None:
    """Ask a model with these backends, directly, by fallback and past all routing."""
    network = MemoryNetwork()
    async with trio.open_nursery() as nursery:
        backends = {}
        for at, kind in enumerate(kinds):
            name = f"b{at}"
            ok = fine("claude" if kind.provider == "anthropic-compatible" else name)
            answer = reply(503, BUSY) if kind.fails else ok
            backends[name] = await RawBackend(network, answer).start(nursery)
        refs = [kind.ref(f"b{at}", backends[f"b{at}"].port) for at, kind in enumerate(kinds)]
        ids = {each.provider: f"id-of-{each.provider}" for each in kinds}
        head = f"external_model_ids: {json.dumps(ids)}"
        retry = f"reliability: {{retry_count: {retries}, retry_on: 5xx}}"
        models = [
            f"{{name: first, {head}, {retry}, backend_refs: [{', '.join(refs[:-1])}]}}",
            f"{{name: second, {head}, backend_refs: [{', '.join(refs[1:])}]}}",
        ]
        routing = """{fallback: {enabled: true}, decisions: [
            {name: all, modelRefs: [{model: first}, {model: second}]}]}"""
        text = document_of(
            *models, default="first", routing=routing, listener="identity: {trust_headers: true}"
        )
        router = await start_router(nursery, network, text)

        for model in ("auto", "first", "second"):
            for stream in (False, True):
                await router.ask(chat_body(model=model, stream=stream), lines=[*USER, *CLIENT])
        for _ in kinds:
            await router.ask(b"{}", target=PASSED, lines=[*USER, *CLIENT])

        check_canaries(backends)
        for kind, backend in zip(kinds, backends.values(), strict=True):
            for seen, body in backend.seen:
                _check_client(kind, seen.target, dict(seen.fields))
                if kind.provider in ids and b"messages" in body:
                    assert json.loads(body)["model"] == ids[kind.provider]
        assert await router.held() == (0, 0)
        nursery.cancel_scope.cancel()


def _check_client(kind: Kind, target: bytes, fields: dict[bytes, bytes]) -> None:
    """The client's own credentials are not at a backend with a key; a user's where it belongs."""
    is_passed_on = target.endswith(b"/embeddings")
    own = (kind.auth_header or "").encode()
    has_user_key = b"user-canary" in fields.values()
    assert not has_user_key or kind.provider == "azure-openai"
    assert b"x-user-azure-openai-key" not in fields
    if kind.has_key:
        for name in (b"authorization", b"api-key", b"x-api-key", own):
            assert fields.get(name) != b"client-canary"
        if not is_passed_on and not has_user_key:
            assert any(value.endswith(b"-canary-key") for value in fields.values())


@settings(max_examples=25, deadline=None)
@given(st.lists(KINDS, min_size=2, max_size=4), st.integers(0, 3))
def test_no_backend_sees_anything_of_another(kinds: list[Kind], retries: int) -> None:
    """Not its key, header, path or model name, nor the client's credentials beside our key."""
    trio.run(run, kinds, retries, clock=trio.testing.MockClock(autojump_threshold=0))
