"""A person with a home directory, who runs `holmes toolset login` and reads what it writes."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import parse_qs, urlsplit

from holmes.toolsets.mcp.login import log_in
from tests.support.command_line import Finished, Home
from tests.toolsets.mcp.oauth_running import Protected, browse, follow
from tests.toolsets.mcp.running import ENVIRONMENT

if TYPE_CHECKING:
    from pathlib import Path

    from holmes.toolsets.mcp.servers import McpServer

ALONE: Final = """
toolsets:
  helm/core: {enabled: false}
  kubernetes/core: {enabled: false}
  kubernetes/diagnosis: {enabled: false}
  kubernetes/logs: {enabled: false}
"""
END_SECONDS: Final = 60
# The states of toolsets are cached between two runs of the command.
REFRESH: Final = ("toolset", "refresh")


@dataclass(frozen=True, kw_only=True)
class Person:
    """A home directory in which one MCP server is configured."""

    home: Home
    server: Protected

    @classmethod
    def at(cls, path: Path, server: Protected, oauth: str = "{}", **variables: str) -> Person:
        mode = server.endpoint(None).mode
        config = f"{{url: '{server.url}', mode: {mode}, oauth: {oauth}}}"
        text = f"{ALONE}mcp_servers:\n  tickets:\n    config: {config}\n"
        return cls(home=Home.make(path, config=text, **variables), server=server)

    @property
    def folder(self) -> Path:
        return self.home.path / ".holmes" / "mcp_tokens"

    @property
    def token_file(self) -> Path:
        (found,) = self.folder.glob("*.json")
        return found

    def stored(self) -> dict[str, Any]:
        stored = json.loads(self.token_file.read_text())
        assert isinstance(stored, dict)
        return stored

    def state(self) -> str:
        """Return the state of the server as a new process lists it."""
        done = self.home.run(*REFRESH)
        assert_no_secrets(self, done)
        assert done.exit_code == 0, done
        (line,) = [line for line in done.stdout.splitlines() if line.startswith("tickets")]
        return " ".join(line.removeprefix("tickets").split())

    @property
    def login_line(self) -> str:
        place = f"MCP server 'tickets' ({self.server.origin})"
        return f"failed {place}: it requires a login; run `holmes toolset login tickets`"

    def log_in(self) -> None:
        with Shown.by(self) as shown:
            follow(browse(shown.address))
            assert shown.end().exit_code == 0


@dataclass(kw_only=True)
class Shown:
    """A running `holmes toolset login` that has shown the address of the login page."""

    process: subprocess.Popen[str]
    address: str
    before: str

    @classmethod
    def by(cls, person: Person, *arguments: str) -> Shown:
        process = person.home.start("toolset", "login", "tickets", "--no-browser", *arguments)
        assert process.stderr is not None
        read = ""
        for line in process.stderr:
            read += line
            if line.startswith("  http"):
                return cls(process=process, address=line.strip(), before=read)
        raise AssertionError(f"no address is shown: {read}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()

    @property
    def redirect(self) -> str:
        return self.parameter("redirect_uri")

    def parameter(self, name: str) -> str:
        return parse_qs(urlsplit(self.address).query)[name][0]

    def end(self) -> Finished:
        stdout, stderr = self.process.communicate(timeout=END_SECONDS)
        return Finished(exit_code=self.process.returncode, stdout=stdout, stderr=self.before + stderr)


async def log_in_at(server: McpServer, folder: Path, *scopes: str) -> str:
    """Log in within this process, and return the address of the login page."""

    def say(text: str) -> None:
        if found := re.search(r"^  (http\S+)$", text, re.MULTILINE):
            shown.append(found[1])
            visits.append(asyncio.create_task(asyncio.to_thread(lambda: follow(browse(found[1])))))

    shown: list[str] = []
    visits: list[asyncio.Task[str]] = []
    listing = await log_in(server, ENVIRONMENT, folder=folder, say=say, opens_browser=False, scopes=scopes)
    assert len(listing.tools) == 3
    await asyncio.gather(*visits)
    return shown[0]


def assert_no_secrets(person: Person, done: Finished, *more: str) -> None:
    secrets = [*more]
    for path in person.folder.glob("*.json"):
        secrets += re.findall(r'"(?:access_token|refresh_token|client_secret)": ?"([^"]+)"', path.read_text("latin-1"))
    assert [secret for secret in secrets if secret in done.stdout + done.stderr] == []
    assert "Traceback" not in done.stderr


def error_lines(done: Finished) -> list[str]:
    """Return what a person reads after the address of the login page."""
    _, _, after = done.stderr.partition("  http")
    return [line for line in after.splitlines()[1:] if line]
