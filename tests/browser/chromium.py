"""A headless Chromium that tests drive over its own pipe, without a driver or a library.

Source: Chrome DevTools Protocol, `--remote-debugging-pipe`: JSON messages that end with a NUL byte,
read by the browser at descriptor 3 and written at 4.
"""

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import trio

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
VARIABLE = "VSR_CHROMIUM"
"""Of the environment: path of the browser, in place of those that are looked for."""
PATIENCE_S = 30.0
_FLAGS = (
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    "--no-first-run",
    "--no-default-browser-check",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
)
_Json = dict[str, Any]


def find_chromium() -> str | None:
    """Return the path of a browser; None: there is none."""
    given = os.environ.get(VARIABLE)
    if given:
        return given
    return next((path for name in NAMES if (path := shutil.which(name))), None)


@attrs.define(eq=False)
class Chromium:
    """A browser with one page."""

    _send: trio.abc.SendStream
    _receive: trio.abc.ReceiveStream
    _last_id: int = 0
    _answers: dict[int, _Json] = attrs.field(factory=dict)
    _changed: trio.Condition = attrs.field(factory=trio.Condition)
    _session: str = ""
    events: list[_Json] = attrs.field(factory=list)
    """All that the page has told by itself, in order."""

    async def listen(self) -> None:
        """Take what the browser says, until it ends."""
        held = b""
        async for piece in self._receive:
            *whole, held = (held + piece).split(b"\0")
            for each in whole:
                message = json.loads(each)
                async with self._changed:
                    if "id" in message:
                        self._answers[message["id"]] = message
                    else:
                        self.events.append(message)
                    self._changed.notify_all()

    async def command(self, method: str, **params: object) -> _Json:
        """Send a command; return its result."""
        self._last_id += 1
        number = self._last_id
        message: _Json = {"id": number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        await self._send.send_all(json.dumps(message).encode() + b"\0")
        with trio.fail_after(PATIENCE_S):
            async with self._changed:
                while number not in self._answers:
                    await self._changed.wait()
        answer = self._answers.pop(number)
        assert "error" not in answer, answer
        result: _Json = answer["result"]
        return result

    async def open_page(self) -> None:
        """Open the one page."""
        target = await self.command("Target.createTarget", url="about:blank")
        attached = await self.command(
            "Target.attachToTarget", targetId=target["targetId"], flatten=True
        )
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            await self.command(f"{domain}.enable")

    async def show(self, url: str) -> None:
        """Go to an address."""
        await self.command("Page.navigate", url=url)

    async def size(self, width: int, height: int, *, scheme: str = "light") -> None:
        """Give the window a size in CSS pixels, and the system a colour scheme."""
        await self.command(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        feature = {"name": "prefers-color-scheme", "value": scheme}
        await self.command("Emulation.setEmulatedMedia", features=[feature])

    async def run(self, expression: str) -> Any:  # noqa: ANN401  # whatever it comes to
        """Return what a script comes to."""
        answer = await self.command(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    async def until(self, expression: str) -> Any:  # noqa: ANN401  # whatever it comes to
        """Wait until a script comes to something true; return that."""
        with trio.move_on_after(PATIENCE_S):
            while True:
                if value := await self.run(expression):
                    return value
                await trio.sleep(0.05)
        text = await self.run("document.body.innerText")
        raise AssertionError(f"never true: {expression}; the page says {text!r}")

    async def text(self) -> str:
        """Return what can be read on the page."""
        found: str = await self.run("document.body.innerText")
        return found

    async def picture(self, path: Path, *, whole: bool = True) -> None:
        """Save how it looks."""
        shot = await self.command("Page.captureScreenshot", captureBeyondViewport=whole)
        await trio.Path(path).write_bytes(base64.b64decode(shot["data"]))

    def complaints(self) -> list[str]:
        """Return what the browser has found wrong: errors, violations of the policy."""
        told = []
        for event in self.events:
            params = event.get("params", {})
            if event["method"] == "Runtime.exceptionThrown":
                told.append(str(params["exceptionDetails"]))
            elif event["method"] == "Log.entryAdded" and params["entry"]["level"] == "error":
                told.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")
        return told

    def asked(self) -> list[str]:
        """Return the addresses that were asked for."""
        sent = (each for each in self.events if each["method"] == "Network.requestWillBeSent")
        return [each["params"]["request"]["url"] for each in sent]


@asynccontextmanager
async def chromium(path: str) -> AsyncIterator[Chromium]:
    """Run a browser with a profile of its own."""
    to_read, to_write = os.pipe()
    from_read, from_write = os.pipe()
    with tempfile.TemporaryDirectory(prefix="vsr-chromium-") as profile:
        process = await _start(path, profile, to_read, from_write)
        os.close(to_read)
        os.close(from_write)
        send, receive = trio.lowlevel.FdStream(to_write), trio.lowlevel.FdStream(from_read)
        try:
            async with send, receive, trio.open_nursery() as nursery:
                browser = Chromium(send, receive)
                nursery.start_soon(browser.listen)
                await browser.open_page()
                yield browser
                nursery.cancel_scope.cancel()
        finally:
            with trio.CancelScope(shield=True):
                process.kill()
                await process.wait()


_EXEC = """
import os, sys
# High first: one of them may stand where the other has to go.
ends = [os.dup2(int(given), 100 + at) for at, given in enumerate(sys.argv[1:3])]
os.dup2(ends[0], 3)
os.dup2(ends[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


async def _start(path: str, profile: str, to_browser: int, from_browser: int) -> trio.Process:
    """Start it with the two ends where it looks for them."""
    ends = [str(to_browser), str(from_browser)]
    own = [path, *_FLAGS, f"--user-data-dir={profile}", "about:blank"]
    return await trio.lowlevel.open_process(
        [sys.executable, "-c", _EXEC, *ends, *own],
        pass_fds=(to_browser, from_browser),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "HOME": profile},
    )
