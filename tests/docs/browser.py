# SPDX-License-Identifier: MIT
"""A headless Chromium for tests of the page: its DevTools protocol over two pipes, which needs no library."""

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

# For one answer: a machine that is busy elsewhere takes long, and none takes that long.
LIMIT_S = 300
KEYS = {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Home": 36, "End": 35, "Tab": 9, "Enter": 13}


def find() -> str | None:
    """The path of a Chromium, or None."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"))), None)


class Browser:
    """One tab. `errors` are what the console and uncaught exceptions said since it was opened."""

    def __init__(self, program: str) -> None:
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()
        # The browser reads file descriptor 3 and writes 4: duplicates far from both
        # keep these free.
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars", "--remote-debugging-pipe",
                 f"--user-data-dir={self.profile.name}", "about:blank"]
        script = f'exec "$0" "$@" 3<&{theirs_in} 4>&{theirs_out}'
        self.child = subprocess.Popen(["/bin/bash", "-c", script, program, *flags], pass_fds=(theirs_in, theirs_out),
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(theirs_in)
        os.close(theirs_out)
        self.reads, self.writes = ours_in, ours_out
        self.rest, self.number, self.session, self.errors = b"", 0, None, []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def close(self) -> None:
        self.child.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.child.wait(10)
        self.child.kill()
        self.child.wait()
        os.close(self.reads)
        os.close(self.writes)
        self.profile.cleanup()

    def message(self) -> dict:
        """The next message of the browser."""
        end = time.monotonic() + LIMIT_S
        while b"\0" not in self.rest:
            if not select.select([self.reads], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            more = os.read(self.reads, 1 << 16)
            if not more:
                raise EOFError("the browser has ended")
            self.rest += more
        text, _, self.rest = self.rest.partition(b"\0")
        return json.loads(text)

    def ask(self, method: str, **params: object) -> dict:
        """Sends a command and returns its result; events that come in between are looked at."""
        self.number += 1
        said = {"id": self.number, "method": method, "params": params}
        if self.session:
            said["sessionId"] = self.session
        os.write(self.writes, json.dumps(said).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.notice(answer)

    def notice(self, event: dict) -> None:
        what, params = event.get("method", ""), event.get("params", {})
        if what == "Runtime.exceptionThrown":
            self.errors.append(params["exceptionDetails"].get("exception", {}).get("description", "an exception"))
        elif what == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.errors.append(str(params["args"]))
        elif what == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.errors.append(params["entry"]["text"])
        elif what == "Network.requestWillBeSent" and not params["request"]["url"].startswith(("file:", "data:")):
            self.errors.append("asks for " + params["request"]["url"])

    def open(self, path: Path, width: int, dark: bool) -> None:
        """Opens a file at a width, in light or dark, and waits until it has loaded."""
        self.errors.clear()
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.ask("Page.navigate", url=path.as_uri())
        end = time.monotonic() + LIMIT_S
        while self.value("location.href === 'about:blank' || document.readyState !== 'complete'"):
            if time.monotonic() > end:
                raise TimeoutError(f"{path} does not load")

    def value(self, expression: str) -> object:
        """What an expression is in the page; a promise is awaited."""
        result = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"]["exception"]["description"])
        return result["result"].get("value")

    def press(self, key: str) -> None:
        """A key as somebody at the keyboard presses it."""
        known = {"key": key, "windowsVirtualKeyCode": KEYS.get(key, ord(key[0].upper())), "code": key}
        if len(key) == 1:
            known["text"] = key
        self.ask("Input.dispatchKeyEvent", type="keyDown", **known)
        self.ask("Input.dispatchKeyEvent", type="keyUp", **known)

    def picture(self, whole: bool = False) -> bytes:
        """The window, or the whole page, as PNG."""
        return base64.b64decode(self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"])
