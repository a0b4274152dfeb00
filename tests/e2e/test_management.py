"""The management API of a Router in a process of its own, and the commands that ask it."""

import itertools
import json
import os
import re
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
import trustme

from tests.e2e.process import ROUTER, START_S, VLLM_SR, Started, free_port, start
from tests.fakes.backend import BACKEND_HOST

CANARIES = ("canary-inline", "canary-environment", "canary-file", "canary-token")
TOKENS = {"VIEW": "canary-token-view", "RUN": "canary-token-run", "ROOT": "canary-token-root"}
CONFIG = "/api/v1/config"
_READS = (
    CONFIG,
    f"{CONFIG}/hash",
    f"{CONFIG}/versions",
    "/api/v1/status",
    "/api/v1/backends",
    "/metrics",
    "/api/v1/observability/audit",
)


@attrs.frozen
class Answer:
    """What the API has answered."""

    status_code: int
    headers: dict[str, str]
    """Names in lower case."""
    text: str

    def json(self) -> Any:  # noqa: ANN401  # of any shape
        """Return its content."""
        return json.loads(self.text)


@attrs.define(eq=False)
class Managed:
    """A Router that is managed."""

    started: Started
    file: Path
    text: str
    url: str

    async def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        role: str = "ROOT",
        if_match: str = "*",
    ) -> Answer:
        """Send a request with the token of a role."""
        headers = {"authorization": f"Bearer {TOKENS[role]}", "if-match": if_match}

        def send() -> Answer:
            return _send(method, self.url + path, headers, body)

        return await trio.to_thread.run_sync(send)

    async def run(self, *arguments: str, role: str = "ROOT") -> "tuple[int, str]":
        """Run a command that asks it; return its status and output."""
        done = await trio.run_process(
            [VLLM_SR, *arguments],
            capture_stdout=True,
            capture_stderr=True,
            check=False,
            env={
                **os.environ,
                "COLUMNS": "80",
                "VSR_MGMT_TOKEN": TOKENS[role],
                "VSR_ADMIN_URL": self.url,
            },
        )
        output = (done.stdout + done.stderr).decode()
        if "json" not in arguments and "--json" not in arguments:
            assert all(len(line) <= 80 for line in done.stdout.decode().splitlines()), output
        return done.returncode, output


def _send(method: str, url: str, headers: dict[str, str], body: object) -> Answer:
    import http.client  # noqa: PLC0415  # as the commands do

    host = url.removeprefix("http://").partition("/")[0]
    connection = http.client.HTTPConnection(host, timeout=40)
    content = None if body is None else json.dumps(body).encode()
    connection.request(method, url.removeprefix(f"http://{host}"), content, headers)
    response = connection.getresponse()
    headers = {name.lower(): value for name, value in response.getheaders()}
    answer = Answer(response.status, headers, response.read().decode())
    connection.close()
    return answer


def document(port: int, admin: int, key: str = "canary-inline-key") -> str:
    """Return a document with every kind of secret."""
    return f"""\
version: v0.3
# the only one
listeners:
  - name: public
    address: {BACKEND_HOST}
    port: {port}
    api_keys: [{key}, "${{CLIENT_KEY}}", "file:key"]
providers:
  models:
    - name: small
      backend_refs:
        - endpoint: "127.0.0.1:1"
          api_key_env: BACKEND_KEY
          extra_headers: {{x-a: canary-inline-x}}
routing: {{}}
global:
  services:
    management_api:
      port: {admin}
      auth:
        mode: bearer
        tokens:
          - {{env: VIEW, role: viewer}}
          - {{env: RUN, role: operator}}
          - {{env: ROOT, role: admin}}
"""


@pytest.fixture
async def managed(
    nursery: trio.Nursery, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Managed]:
    """Start one."""
    values = {"CLIENT_KEY": "canary-environment-c", "BACKEND_KEY": "canary-environment-b"}
    for name, value in {**values, **TOKENS}.items():
        monkeypatch.setenv(name, value)
    port, admin = free_port(), free_port()
    file, text = tmp_path / "config.yaml", document(port, admin)
    file.write_text(text)
    (tmp_path / "key").write_text("canary-file-key\n")
    command = [ROUTER, "--config", str(file), "--gateway", "standalone", "--metrics-port", "0"]
    started = await start(nursery, command, tmp_path / "access.log")
    await started.says(re.compile("management API answers"))
    yield Managed(started, file, text, f"http://127.0.0.1:{admin}")
    started.send(signal.SIGKILL)


async def test_changes_are_made_and_taken_back(managed: Managed) -> None:
    """By the API and by the commands, over the document's own file."""
    first = await managed.ask("GET", CONFIG)
    patch = {"yaml": "global: {router: {include_config_models_in_list: true}}"}
    etag = first.headers["etag"]
    patched = await managed.ask("PATCH", CONFIG, patch, role="RUN", if_match=etag)
    stale = await managed.ask("PATCH", CONFIG, patch, role="RUN", if_match=etag)

    assert (patched.status_code, patched.json()["config_version"]) == (200, 2)
    assert (stale.status_code, stale.headers["etag"]) == (412, patched.headers["etag"])
    assert managed.file.read_text().startswith(managed.text[: managed.text.index("global")])
    code, output = await managed.run("config", "rollback", "1", role="RUN")
    assert (code, "Version 3 serves." in output) == (0, True)
    assert managed.file.read_text() == managed.text
    code, output = await managed.run("config", "versions", role="VIEW")
    assert code == 0
    assert [line.split()[0] for line in output.splitlines()] == ["VERSION", "3", "2", "1"]
    assert "rollback of 1" in output
    status = (await managed.ask("GET", "/api/v1/status")).json()
    assert status["config"]["active"]["origin"] == {
        "source": "rollback",
        "principal": "operator",
        "request_id": status["config"]["active"]["origin"]["request_id"],
        "rollback_of": 1,
    }
    entries = (await managed.ask("GET", "/api/v1/observability/audit")).json()["entries"]
    assert [each["action"] for each in entries] == [
        "config.activate",
        "config.activate",
        "config.patch",
        "config.patch",
        "config.activate",
        "config.rollback",
    ]


async def test_change_that_cannot_be_warmed_is_told_and_the_one_before_serves(
    managed: Managed,
) -> None:
    """503, the document stays, and a rollback mends it."""
    taken = free_port()
    listener = await trio.open_tcp_listeners(taken, host=BACKEND_HOST)
    text = managed.text.replace(
        "providers:", f"  - {{name: other, address: {BACKEND_HOST}, port: {taken}}}\nproviders:"
    )

    refused = await managed.ask("PUT", CONFIG, {"yaml": text})
    standing = (await managed.ask("GET", f"{CONFIG}/hash")).json()
    code, _ = await managed.run("config", "rollback", "1")
    for each in listener:
        await each.aclose()

    told = refused.json()
    assert (refused.status_code, told["status"]) == (503, "activation_failed")
    assert told["activation"]["stage"] == "warm"
    assert (standing["activation_status"], standing["active_version"]) == ("failed", 1)
    assert standing["last_rejection"]["reasons"] == told["activation"]["reasons"]
    assert code == 0
    assert managed.file.read_text() == managed.text


async def test_what_would_open_up_is_refused(managed: Managed) -> None:
    """Before the document is written."""
    opened = managed.text.replace(
        "    management_api:", "    management_api:\n      bind_address: 0.0.0.0"
    )

    exposed = await managed.ask("PUT", CONFIG, {"yaml": opened})

    assert exposed.status_code == 400
    assert managed.file.read_text() == managed.text


async def test_no_secret_is_shown(managed: Managed, tmp_path: Path) -> None:
    """In no answer, field, log line or output, whatever is asked and goes wrong."""
    key = managed.text.replace("api_keys: [canary-inline-key", "api_keys: [canary-inline-k 2")
    broken = [
        managed.text + "canary-inline-key: [\n",
        key,
        managed.text.replace("name: public", 'name: "${CLIENT_KEY}"').replace(
            "routing: {}", 'routing: {decisions: [{name: d, rules: {type: "${BACKEND_KEY}"}}]}'
        ),
        managed.text.replace("api_key_env: BACKEND_KEY", "api_key: canary-inline-b, zzz: 1"),
        managed.text.replace("port: ", 'port: "${CLIENT_KEY}" #'),
        managed.text.replace("x-a: canary-inline-x", '"bad name": canary-inline-x'),
    ]
    shown: list[str] = []
    statuses = set[int]()

    async def show(method: str, path: str, role: str, body: object = None) -> None:
        got = await managed.ask(method, path, body, role=role)
        statuses.add(got.status_code)
        shown.append(f"{got.headers}{got.text}")

    for text in (managed.text, *broken):
        compared = {"yaml": text, "compare_to_active": True}
        await show("POST", f"{CONFIG}/validate", "VIEW", compared)
        await show("POST", f"{CONFIG}/plan", "RUN", {"yaml": text, "mode": "merge"})
        await show("PUT", CONFIG, "RUN", {"yaml": text})
    await show("PUT", CONFIG, "VIEW", {"yaml": managed.text})
    managed.file.write_text(broken[0])
    with trio.fail_after(START_S):
        await managed.started.says(re.compile("configuration refused"))
    for role, path in itertools.product(("VIEW", "RUN"), _READS):
        await show("GET", path, role)
    for words in (("status",), ("config", "versions"), ("config", "plan", str(managed.file))):
        shown.append((await managed.run(*words, role="VIEW"))[1])  # noqa: PERF401  # awaits

    text = "".join(shown)
    logs = managed.started.stderr + (tmp_path / "access.log").read_text()
    assert [canary for canary in CANARIES if canary in text + logs] == []
    assert "<redacted>" in text
    assert {200, 400, 403, 500} <= statuses


async def test_commands_tell_of_a_router(managed: Managed, tmp_path: Path) -> None:
    """In 80 columns, and as JSON."""
    other = tmp_path / "other.yaml"
    other.write_text(managed.text.replace("canary-inline-key", "canary-inline-new"))

    status = await managed.run("status")
    backends = await managed.run("backends", "list")
    as_json = await managed.run("status", "--output", "json")
    diff = await managed.run("config", "diff", str(other))
    plan = await managed.run("config", "plan", str(other))
    applied = await managed.run("config", "apply", str(other))
    denied = await managed.run("drain", "--yes", role="RUN")

    assert "version 1" in status[1]
    assert "small" in backends[1]
    assert json.loads(as_json[1])["serving"]["workers"] == 1
    assert diff == (
        1,
        '~ listeners[public].api_keys[0]: "<redacted>" -> "<redacted>"\n',
    )
    assert (plan[0], "it would be served" in plan[1]) == (0, True)
    assert (applied[0], "Version 2 serves." in applied[1]) == (0, True)
    assert (denied[0], "FORBIDDEN" in denied[1]) == (1, True)


async def test_api_moves_and_speaks_tls(managed: Managed, tmp_path: Path) -> None:
    """By a document that it is sent; SIGHUP loads a certificate anew."""
    port = free_port()
    first, second = trustme.CA(), trustme.CA()
    _write_pair(first, managed.file.parent)
    first.cert_pem.write_to_path(str(tmp_path / "first.pem"))
    second.cert_pem.write_to_path(str(tmp_path / "second.pem"))
    part = tmp_path / "part.yaml"
    tls = "{cert_file: tls.crt, key_file: tls.key}"
    part.write_text(f"global: {{services: {{management_api: {{port: {port}, tls: {tls}}}}}}}\n")

    applied = await managed.run("config", "apply", "--mode", "merge", str(part))
    at_old = await managed.run("status")
    managed.url = f"https://127.0.0.1:{port}"
    stranger = await managed.run("status")
    trusted = await managed.run("status", "--admin-ca-file", str(tmp_path / "first.pem"))
    _write_pair(second, managed.file.parent)
    managed.started.send(signal.SIGHUP)
    with trio.fail_after(START_S):
        await managed.started.says(re.compile("configuration version 3 serves"))
    reloaded = await managed.run("status", "--admin-ca-file", str(tmp_path / "second.pem"))

    assert applied[0] == 0, applied
    assert (at_old[0], "Connection refused" in at_old[1]) == (1, True)
    assert (stranger[0], "--admin-ca-file says whom to trust" in stranger[1]) == (1, True)
    assert (trusted[0], reloaded[0]) == (0, 0), (trusted, reloaded)


def _write_pair(authority: trustme.CA, folder: Path) -> None:
    issued = authority.issue_cert("127.0.0.1")
    issued.private_key_and_cert_chain_pem.write_to_path(str(folder / "tls.crt"))
    issued.private_key_pem.write_to_path(str(folder / "tls.key"))


async def test_drain_ends_the_process(managed: Managed) -> None:
    """As SIGTERM does."""
    code, _ = await managed.run("drain", "--yes")

    with trio.fail_after(30):
        assert await managed.started.process.wait() == 0
    assert code == 0
