"""What only a fresh process shows: nothing printed, nothing fetched, nothing left open, and not imported too early."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.support.openai_server import OpenAIServer, Reply, call

ROOT = Path(__file__).parents[2]

ASK = """
import asyncio, socket, sys
from holmes.values.messages import SystemMessage, user_text
from holmes.values.model import ModelRequest
from holmes.llm import litellm_loader
from holmes.llm.config import LitellmModelConfig
from holmes.app.models import build_model

assert "litellm" not in sys.modules
contacted = set()
real_connect = socket.socket.connect
sys.addaudithook(lambda name, args: contacted.add(args[1]) if name == "socket.connect" else None)

async def ignore(event):
    pass

async def main():
    litellm_loader.preload()
    model = build_model(LitellmModelConfig(name="m", model="openai/gpt-4o", api_key="k", api_base=sys.argv[1]))
    await model.check()
    request = ModelRequest(
        messages=(SystemMessage(text="s"), user_text("q")), tools=(), tool_choice="auto", max_output_tokens=10
    )
    reply = await model.complete(request, ignore)
    await model.aclose()
    assert reply.message.text == "ok", reply

asyncio.run(main())
assert {address[0] for address in contacted} == {"127.0.0.1"}, contacted
"""


def test_a_request_prints_nothing_and_talks_to_nobody_else() -> None:
    with OpenAIServer([Reply(text="ok")]) as server:
        done = subprocess.run(
            [sys.executable, "-W", "default::ResourceWarning", "-c", ASK, server.base_url],
            capture_output=True,
            text=True,
            timeout=60,
            cwd=ROOT,
            check=False,
        )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_scripted_server_runs_as_a_program(tmp_path: Path) -> None:
    import httpx

    script = [
        {"text": "first", "tool_calls": [{"name": "get", "arguments": {"a": 1}}]},
        {"status": 503, "message": "x"},
    ]
    path = tmp_path / "script.json"
    path.write_text(json.dumps(script))
    with subprocess.Popen(
        [sys.executable, "-m", "tests.support.openai_server", str(path)], stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        try:
            assert process.stdout is not None
            base_url = process.stdout.readline().strip()
            answers = [httpx.post(f"{base_url}/chat/completions", json={"model": "m"}) for _ in range(3)]
        finally:
            process.terminate()
    assert [answer.status_code for answer in answers] == [200, 503, 503]
    message = answers[0].json()["choices"][0]["message"]
    assert message["content"] == "first"
    assert message["tool_calls"][0]["function"] == {"name": "get", "arguments": '{"a": 1}'}


def test_a_script_that_is_over_says_so() -> None:
    import httpx

    with OpenAIServer([Reply(text="x", tool_calls=(call("get"),))]) as server:
        answers = [httpx.post(f"{server.base_url}/chat/completions", json={"model": "m"}) for _ in range(2)]
    assert answers[1].status_code == 400
    assert "the script is over: it has 1 replies" in answers[1].text
