"""No secret that a tool prints leaves its toolset: not into store, requests, screen, report, conversation (N13)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.support.command_line import Home, provider_config
from tests.support.openai_server import OpenAIServer, Reply, call
from tests.support.planted_secrets import planted_secrets

if TYPE_CHECKING:
    from pathlib import Path

KEPT = (
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "5c1a2a3e-6c19-4b3e-9f0b-3d7f5f0f7f11",
    "4f2a1c9be3d7a6508b1f0c2d3e4f5a6b7c8d9e0f",
    "checkout-7f9c6d5b8-x2k4q",
    "containerd://b0c1d2e3f4a5968778695a4b3c2d1e0f9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c4d",
)


def leaking_toolset(home: Home) -> int:
    """A toolset of the user that prints the carriers of each planted secret; returns how many outputs there are."""
    for number, planted in enumerate(planted_secrets()):
        (home.path / f"leak-{number}.txt").write_text("\n\n".join((*planted.carriers[:3], "\n".join(KEPT), "")))
    tools = [
        {"name": "leak", "description": "d", "command": f"cat {home.path}/leak-{{{{ number }}}}.txt"},
        {"name": "leak_error", "description": "d", "command": f"cat {home.path}/leak-0.txt >&2; exit 3"},
    ]
    (home.path / "leaks.yaml").write_text(
        yaml.safe_dump({"toolsets": {"leaks": {"description": "d", "enabled": True, "tools": tools}}})
    )
    return len(planted_secrets())


@pytest.mark.row("N13")
@pytest.mark.timeout(180)
def test_no_planted_secret_is_found_anywhere_and_what_engineers_need_stays(tmp_path: Path, kubeconfig: Path) -> None:
    home = Home.make(tmp_path / "home", KUBECONFIG=str(kubeconfig))
    count = leaking_toolset(home)
    planted = planted_secrets()
    assert len({each.kind for each in planted}) >= 40

    def respond(body: dict[str, Any]) -> Reply:
        results = [message["content"] for message in body["messages"] if message["role"] == "tool"]
        calls = (*(call("leak", number=str(number)) for number in range(count)), call("leak_error"))
        begun = calls[len(results) : len(results) + 32]  # as many as the loop begins of one reply
        return Reply(text="", tool_calls=begun) if begun else Reply(text=json.dumps(results))

    question = f"why does it fail? {planted[0].carriers[0]}"
    (home.path / "app.log").write_text(planted[1].carriers[0])
    report = home.path / "report.json"
    with OpenAIServer(respond) as server:
        (home.path / ".holmes" / "config.yaml").write_text(
            provider_config(server.base_url, "override_max_content_size: 1000000", "context: {round_cap_factor: 0}")
        )
        done = home.run(
            *("ask", "-n", question, "--custom-toolsets", str(home.path / "leaks.yaml")),
            *("--file", str(home.path / "app.log"), "--show-tool-output", "--json-output-file", str(report)),
        )
        sent = "\n".join(json.dumps(request.body) for request in server.requests)
    assert done.exit_code == 0, done.stderr
    kept = [path for path in (home.path / ".holmes").rglob("*") if path.is_file()]
    assert len([path for path in kept if "blobs" in path.parts]) >= count
    places = {"requests": sent, "answer": done.stdout, "screen": done.stderr, "report": report.read_text()}
    places |= {str(path): path.read_bytes().decode("utf-8", "replace") for path in kept}
    for each in planted:
        for trace in each.traces:
            found = [name for name, text in places.items() if trace in text or json.dumps(trace)[1:-1] in text]
            assert found == [], f"{each.kind}: {trace!r}"
    for text in KEPT:
        assert sent.count(text) >= count
