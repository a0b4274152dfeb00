"""HTTP/2 and TLS with other people's clients, on real sockets.

The clients are programs of the distribution; a test whose program is missing is skipped.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import attrs
import pytest
import trio
import trustme

from tests.e2e.standalone import LISTENER, Standalone, start_standalone, until
from tests.e2e.wire import chat
from tests.fakes.backend import BACKEND_HOST
from vsr.demo.script import Script
from vsr.demo.server import CallEnd
from vsr.gateway.serve import Server
from vsr.network.tls_server import ServerCertificate

CHAT_PATH = "/v1/chat/completions"
_BENCH_VENVS = Path(__file__).parents[2] / ".bench" / "venvs"
PATIENCE_S = 60
GONE_S = 2.0
"""Until the other process has left and the kernel has said so."""


@attrs.define(eq=False)
class Served:
    """A Router with a listener in clear text and one with TLS."""

    standalone: Standalone
    tls: Server
    folder: Path

    @property
    def url(self) -> str:
        """Return the root of the listener in clear text."""
        return f"http://{BACKEND_HOST}:{self.standalone.port}"

    @property
    def tls_url(self) -> str:
        """Return the root of the other."""
        return f"https://localhost:{self.tls.ports['public']}"

    async def settled(self) -> None:
        """Wait until nothing is left of any request; the second listener is one socket more."""
        left = {"sockets": 1}
        await until(lambda: {k: v for k, v in self.standalone.held().items() if v} == left)


@pytest.fixture
async def served(nursery: trio.Nursery, tmp_path: Path) -> Served:
    """Serve quick answers of a few events."""
    standalone = await start_standalone(nursery, Script(chunks=8))
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    issued = authority.issue_cert("localhost")
    (tmp_path / "tls.crt").write_bytes(b"".join(pem.bytes() for pem in issued.cert_chain_pems))
    issued.private_key_pem.write_to_path(str(tmp_path / "tls.key"))
    (tmp_path / "chat.json").write_bytes(chat())
    (tmp_path / "stream.json").write_bytes(chat(stream=True))
    (tmp_path / "large.json").write_bytes(chat("x" * 3_000_000))
    certificate = ServerCertificate("public", tmp_path / "tls.crt", tmp_path / "tls.key")
    server = Server(standalone.network, standalone.router.gateway, {"public": certificate})
    await server.bind([LISTENER])
    await nursery.start(serve, server)
    return Served(standalone, server, tmp_path)


async def serve(server: Server, *, task_status: trio.TaskStatus[None]) -> None:
    """Serve until cancelled, then close every socket."""
    try:
        async with trio.open_nursery() as tasks:
            await tasks.start(server.run)
            task_status.started()
    finally:
        with trio.CancelScope(shield=True, relative_deadline=PATIENCE_S):
            await server.drain(0)


def program(name: str) -> str:
    """Return where a program is; skip the test if it is not installed.

    The benchmark installs some beside the working copy.
    """
    places = [Path(sys.executable).parent, *_BENCH_VENVS.glob("*/bin")]
    found = shutil.which(name) or shutil.which(name, path=os.pathsep.join(map(str, places)))
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


async def run(name: str, *arguments: str | Path) -> str:
    """Run a program to its end; return what it writes."""
    command: Sequence[str | Path] = [program(name), *arguments]
    with trio.fail_after(PATIENCE_S):
        done = await trio.run_process(command, capture_stdout=True, capture_stderr=True)
    return done.stdout.decode()


def curl_options(served: Served, body: str) -> list[str | Path]:
    """Return how curl posts a file and reports version and status behind the answer."""
    return [
        "--silent",
        "--show-error",
        "--no-buffer",
        "--cacert",
        served.folder / "ca.pem",
        "--write-out",
        r"\n%{http_version} %{response_code}",
        "--header",
        "content-type: application/json",
        "--data-binary",
        f"@{served.folder / body}",
    ]


@pytest.mark.parametrize("body", ["chat.json", "stream.json", "large.json"])
@pytest.mark.parametrize(
    ("options", "is_tls", "version"),
    [
        (["--http2-prior-knowledge"], False, "2"),
        (["--http2"], True, "2"),
        (["--http1.1"], True, "1.1"),
        (["--http1.1"], False, "1.1"),
        (["--http2"], False, "1.1"),
    ],
    ids=["h2c", "h2", "http/1.1 over TLS", "http/1.1", "upgrade is not followed"],
)
async def test_curl_gets_the_same_answers_by_every_way(
    options: list[str], version: str, body: str, served: Served, *, is_tls: bool
) -> None:
    """Whole, streamed and behind a large upload."""
    url = (served.tls_url if is_tls else served.url) + CHAT_PATH

    text, _, end = (await run("curl", *options, *curl_options(served, body), url)).rpartition("\n")

    assert end == f"{version} 200"
    if body == "stream.json":
        assert text.endswith("data: [DONE]\n\n")
        assert text.count("data: ") >= 10
    else:
        assert json.loads(text)["object"] == "chat.completion"
    await served.settled()


async def test_curl_reads_an_early_answer_to_its_upload(
    nursery: trio.Nursery, served: Served
) -> None:
    """Refused before the body was sent: an answer, not a broken connection."""
    listener = attrs.evolve(LISTENER, max_body_bytes=1000)
    small = await start_standalone(nursery, Script(), listener=listener)
    url = f"http://{BACKEND_HOST}:{small.port}{CHAT_PATH}"
    options = curl_options(served, "large.json")

    text, _, end = (await run("curl", "--http2-prior-knowledge", *options, url)).rpartition("\n")

    assert end == "2 413"
    assert json.loads(text)["error"]["code"] == "request_too_large"
    await small.settled()


async def test_leaving_curl_ends_the_backend_call(served: Served) -> None:
    """Killed in the middle of a stream."""
    standalone = served.standalone
    for name, model in (("small", standalone.small), ("large", standalone.large)):
        model.script = attrs.evolve(
            standalone.script, model=name, chunks=1000, chunk_interval_s=0.01
        )
    options = curl_options(served, "stream.json")
    command = [program("curl"), "--http2-prior-knowledge", *options, served.url + CHAT_PATH]

    async with trio.open_nursery() as nursery:
        start = partial(trio.run_process, command, stdout=subprocess.DEVNULL, check=False)
        process: trio.Process = await nursery.start(start)
        await until(lambda: any(call.bytes_sent > 1000 for call in standalone.small.calls))
        process.kill()

    await until(lambda: standalone.small.calls[0].end is CallEnd.PEER_GONE, GONE_S)
    await served.settled()


async def test_nghttp_sees_streams_end(served: Served) -> None:
    """Field report L4: the end of each answer is told, and the connection is left in order."""
    text = await run(
        "nghttp",
        "--verbose",
        "--no-dep",
        "--multiply=2",
        "--data",
        served.folder / "stream.json",
        "--header=content-type: application/json",
        served.url + CHAT_PATH,
    )

    received = re.sub(r"\x1b\[[0-9;]*m", "", text)
    assert received.count(":status: 200") == 2
    assert received.count("data: [DONE]") == 2
    assert len(re.findall(r"recv DATA frame <[^>]*flags=0x01", received)) == 2
    assert "RST_STREAM" not in received
    assert not re.findall(r"recv GOAWAY[^\n]*\n[^\n]*error_code=(?!NO_ERROR)", received)
    await served.settled()


@pytest.mark.parametrize(
    ("body", "clients", "streams", "requests"),
    [("chat.json", 4, 50, 1000), ("stream.json", 2, 100, 400), ("chat.json", 1, 250, 1000)],
)
@pytest.mark.parametrize("is_tls", [False, True], ids=["h2c", "h2"])
async def test_h2load_gets_every_answer(
    body: str, clients: int, streams: int, requests: int, served: Served, *, is_tls: bool
) -> None:
    """As many streams at a time as there may be; nothing is refused, nothing is left."""
    text = await run(
        "h2load",
        f"--requests={requests}",
        f"--clients={clients}",
        f"--max-concurrent-streams={streams}",
        f"--data={served.folder / body}",
        "--header=content-type: application/json",
        (served.tls_url if is_tls else served.url) + CHAT_PATH,
    )

    assert f"{requests} succeeded, 0 failed, 0 errored, 0 timeout" in text
    assert f"status codes: {requests} 2xx" in text
    await served.settled()
    await until(lambda: served.tls.open_connections == 0)


_ENVOY = """\
static_resources:
  listeners:
    - address: {{socket_address: {{address: 127.0.0.1, port_value: {port}}}}}
      filter_chains:
        - filters:
            - name: envoy.filters.network.http_connection_manager
              typed_config:
                "@type": type.googleapis.com/envoy.extensions.filters.network.\
http_connection_manager.v3.HttpConnectionManager
                stat_prefix: in
                route_config:
                  virtual_hosts:
                    - name: all
                      domains: ["*"]
                      routes: [{{match: {{prefix: /}}, route: {{cluster: router, timeout: 0s}}}}]
                http_filters:
                  - name: envoy.filters.http.router
                    typed_config:
                      "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router
  clusters:
    - name: router
      type: STATIC
      typed_extension_protocol_options:
        envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
          "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
          explicit_http_config: {{http2_protocol_options: {{}}}}
      load_assignment:
        cluster_name: router
        endpoints:
          - lb_endpoints:
              - endpoint:
                  address: {{socket_address: {{address: 127.0.0.1, port_value: {router}}}}}
"""


async def test_envoy_is_served_by_http2(nursery: trio.Nursery, served: Served) -> None:
    """Whole, streamed, large, 200 at once, and one that leaves: as its clients would see it."""
    standalone = served.standalone
    router = served.standalone.port
    port = await start_envoy(
        nursery, served.folder, lambda port: _ENVOY.format(port=port, router=router)
    )
    url = f"http://{BACKEND_HOST}:{port}{CHAT_PATH}"

    texts = {
        body: (await run("curl", *curl_options(served, body), url)).rpartition("\n")
        for body in ("chat.json", "stream.json", "large.json")
    }
    load = await run(
        "h2load",
        "--h1",
        "--requests=1000",
        "--clients=200",
        f"--data={served.folder / 'chat.json'}",
        "--header=content-type: application/json",
        url,
    )

    assert {end for _, _, end in texts.values()} == {"1.1 200"}
    assert texts["stream.json"][0].endswith("data: [DONE]\n\n")
    assert "1000 succeeded, 0 failed, 0 errored, 0 timeout" in load
    lines = await standalone.log_lines()
    assert {line["protocol"] for line in lines} == {"HTTP/2"}
    await until(lambda: standalone.held()["calls"] == 0)


async def start_envoy(
    nursery: trio.Nursery, folder: Path, configuration: Callable[[int], str]
) -> int:
    """Start an Envoy; return its port, for which its configuration is asked."""
    envoy = program("envoy")
    listener = await trio.open_tcp_listeners(0, host=BACKEND_HOST)
    port: int = listener[0].socket.getsockname()[1]
    await listener[0].aclose()
    config = folder / "envoy.yaml"
    config.write_text(configuration(port))
    command = [envoy, "-c", str(config), "--concurrency", "1", "--disable-hot-restart"]
    nothing = subprocess.DEVNULL
    start = partial(trio.run_process, command, stdout=nothing, stderr=nothing, check=False)
    await nursery.start(start)
    with trio.fail_after(PATIENCE_S):
        while not await is_listening(port):  # noqa: ASYNC110  # another process, which tells nobody
            await trio.sleep(0.1)
    return port


async def is_listening(port: int) -> bool:
    """Return whether a port accepts connections."""
    try:
        stream = await trio.open_tcp_stream(BACKEND_HOST, port)
    except OSError:
        return False
    await stream.aclose()
    return True
