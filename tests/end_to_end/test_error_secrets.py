"""What fails says why without the secrets that others wrote into the reason: at the terminal, over HTTP, in records."""

from __future__ import annotations

import html
import json
import re
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.support.certificates import make_certificates
from tests.support.command_line import Home, provider_config
from tests.support.holmes_server import holmes_server
from tests.support.kubernetes_api import Answer, document, kubernetes_api
from tests.support.openai_server import ErrorReply, OpenAIServer, Reply, call
from tests.support.planted_forms import random_text
from tests.telemetry.otlp_collector import OtlpCollector

TOKEN = "gh" + "p_" + random_text("in an error", 36)
PASSWORD = "tintenfisch" + "-blau"
OWN_KEY = "sk-" + "proj-" + random_text("own key", 48)


def leaking_plugin(folder: Path, server: str) -> Path:
    """A kubeconfig whose credential plug-in fails and says far too much, also in colour.

    As long as there is a file `works` beside it, it gives a token.
    """
    plugin = folder / "login.sh"
    version = "client.authentication.k8s.io/v1"
    credential = {"apiVersion": version, "kind": "ExecCredential", "status": {"token": "t"}}
    plugin.write_text(
        f"#!/bin/sh\n[ -e '{folder / 'works'}' ] && echo '{json.dumps(credential)}' && exit 0\n"
        f"echo 'trying with password={PASSWORD}' >&2\n"
        f"printf 'refused: password=%s \\033[33mtoken: %s\\033[0m\\n' '{PASSWORD}' '{TOKEN}' >&2\nexit 7\n"
    )
    plugin.chmod(0o755)
    user = {"exec": {"apiVersion": version, "command": str(plugin), "interactiveMode": "Never"}}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": server, "insecure-skip-tls-verify": True}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    }
    path = folder / "kubeconfig"
    path.write_text(json.dumps(config))
    return path


def kept_by(home: Home) -> str:
    files = [path for path in home.path.rglob("*") if path.is_file() and path.name not in {"config.yaml", "login.sh"}]
    return "\n".join(path.read_bytes().decode("utf-8", "replace") for path in files)


def refused(_: dict[str, Any]) -> ErrorReply:
    message = f"Incorrect API key provided: {OWN_KEY} (password={PASSWORD}). Authorization: Bearer {TOKEN}"
    error = {"message": message, "type": "invalid_request_error", "code": "x"}
    return ErrorReply(status=401, body=json.dumps({"error": error}))


def assert_masked(*texts: str) -> None:
    for text in texts:
        for secret in (TOKEN, PASSWORD, OWN_KEY):
            assert secret not in text
        assert "\x1b[33m" not in text


@pytest.mark.parametrize("command", [("scan",), ("ask", "-n", "why?"), ("snapshot", "create", "folder")])
def test_a_credential_plugin_tells_no_secret_to_the_terminal(tmp_path: Path, command: tuple[str, ...]) -> None:
    home = Home.make(tmp_path / "home", KUBECONFIG=str(leaking_plugin(tmp_path, "https://127.0.0.1:9")))
    done = home.run(*(str(tmp_path / word) if word == "folder" else word for word in command))
    assert done.exit_code == 3
    assert "failed with exit code 7: refused: password=(REDACTED:password:" in done.stderr
    assert_masked(done.stdout, done.stderr, kept_by(home))


def test_a_provider_that_repeats_a_key_tells_it_to_nobody(tmp_path: Path, kubeconfig: Path) -> None:
    home = Home.make(tmp_path / "home", KUBECONFIG=str(kubeconfig))
    report = tmp_path / "report.json"
    with OpenAIServer(refused) as server:
        (home.path / ".holmes" / "config.yaml").write_text(provider_config(server.base_url))
        done = home.run("ask", "-n", "why?", "--json-output-file", str(report))
    assert done.exit_code == 1
    assert "HTTP 401" in done.stderr
    assert_masked(done.stdout, done.stderr, kept_by(home), report.read_text())


def test_a_broken_file_is_not_quoted_with_its_secrets(tmp_path: Path, kubeconfig: Path) -> None:
    for content in (f"api_key: {OWN_KEY}\nmodel: [x\n", f"model:\n  password={PASSWORD}: {TOKEN}\n", f'"{TOKEN}": 1\n'):
        home = Home.make(tmp_path / f"home-{len(content)}", config=content, KUBECONFIG=str(kubeconfig))
        done = home.run("ask", "-n", "why?")
        assert done.exit_code == 2
        assert_masked(done.stdout, done.stderr)


def test_a_toolset_that_fails_tells_no_secret_to_people_or_the_model(tmp_path: Path, kubeconfig: Path) -> None:
    said = f"echo 'password={PASSWORD}' >&2; yes 'x' | head -300 >&2; echo 'token: {TOKEN}' >&2; exit 3"
    toolset = {
        "leaks/check": {
            "description": "d",
            "prerequisites": [{"command": said}],
            "tools": [{"name": "never", "description": "d", "command": "date"}],
        },
        "leaks/tool": {"description": "d", "tools": [{"name": "leak", "description": "d", "command": said}]},
    }
    file = tmp_path / "leaks.yaml"
    file.write_text(yaml.safe_dump({"toolsets": toolset}))
    home = Home.make(tmp_path / "home", KUBECONFIG=str(kubeconfig))

    def respond(body: dict[str, Any]) -> Reply:
        results = [message["content"] for message in body["messages"] if message["role"] == "tool"]
        return Reply(text="done") if results else Reply(text="", tool_calls=(call("leak"),))

    with OpenAIServer(respond) as server:
        (home.path / ".holmes" / "config.yaml").write_text(provider_config(server.base_url))
        done = home.run("ask", "-n", "why?", "-t", str(file), "--show-tool-output")
        sent = "\n".join(json.dumps(request.body) for request in server.requests)
    listed = home.run("toolset", "list", "-t", str(file))
    assert "leaks/check" in listed.stdout
    assert "leaks/check" in sent
    assert_masked(done.stdout, done.stderr, sent, listed.stdout, listed.stderr, kept_by(home))


def test_a_server_tells_no_secret_in_answers_streams_records_pages_and_logs(tmp_path: Path, kubeconfig: Path) -> None:
    home = Home.make(tmp_path / "home", KUBECONFIG=str(kubeconfig))
    with OpenAIServer(refused) as provider:
        (home.path / ".holmes" / "config.yaml").write_text(provider_config(provider.base_url))
        with holmes_server(home) as server, httpx.Client(base_url=server.url, timeout=60) as client:
            answer = client.post("/api/chat", json={"ask": "why?"})
            stream = client.post("/api/chat", json={"ask": "why?", "stream": True})
            wrong = client.post("/api/chat", json={"ask": "why?", "model": f"password={PASSWORD} {TOKEN}"})
            made = client.post("/api/investigations", json={"question": "why?"})
            log = server.log
    texts = (answer.text, stream.text, wrong.text, made.text, log)
    assert "401" in answer.text
    assert "401" in stream.text
    assert_masked(*texts, kept_by(home))


def investigated(client: httpx.Client) -> dict[str, Any]:
    """A new investigation, once it has ended."""
    made = client.post("/api/investigations", json={"question": "why does web in namespace shop fail?"}).json()
    for _ in range(600):
        record: dict[str, Any] = client.get(f"/api/investigations/{made['id']}").json()
        if record["state"] not in {"queued", "running"}:
            return record
        time.sleep(0.1)
    raise AssertionError(f"it never ended: {made}")


def shown_of(client: httpx.Client, identity: str) -> str:
    """The pages on which an investigation, its outputs and failed toolsets can be seen, as text."""
    about = client.get(f"/investigations/{identity}").text
    outputs = dict.fromkeys(re.findall(rf"/investigations/{identity}/outputs/\d+", about))
    return html.unescape("\n".join([about, *(client.get(path).text for path in ("/", "/investigations", *outputs))]))


def test_spans_and_pages_show_no_secret_of_a_provider_that_repeats_a_key(tmp_path: Path, kubeconfig: Path) -> None:
    with OtlpCollector() as collector, OpenAIServer(refused) as provider:
        home = Home.make(
            tmp_path / "home",
            config=provider_config(provider.base_url),
            KUBECONFIG=str(kubeconfig),
            OTEL_EXPORTER_OTLP_ENDPOINT=collector.url,
        )
        with holmes_server(home) as server, server.client() as client:
            shown = shown_of(client, investigated(client)["id"])
        failed = [span for span in collector.spans() if span.is_error]
    assert "HTTP 401" in shown
    assert "chat scripted" in {span.name for span in failed}
    assert_masked(repr(failed), server.log, kept_by(home), shown)


def test_spans_and_pages_show_no_secret_of_a_plugin_that_fails_meanwhile(
    tmp_path: Path,
) -> None:
    works = tmp_path / "works"
    works.touch()

    def respond(body: dict[str, Any]) -> Reply:
        works.unlink(missing_ok=True)
        if any(message["role"] == "tool" for message in body["messages"]):
            return Reply(text="It cannot be seen.")
        return Reply(tool_calls=(call("kubernetes_logs", kind="pod", name="web", namespace="shop"),))

    tls = make_certificates().server_context(tmp_path)
    with kubernetes_api(tls=tls) as api, OtlpCollector() as collector, OpenAIServer(respond) as provider:
        api.on("/version", document({"gitVersion": "v1.34.0"}))
        api.on("/api/v1/namespaces/shop/pods/web", Answer(status=401))
        home = Home.make(
            tmp_path / "home",
            config=provider_config(provider.base_url),
            KUBECONFIG=str(leaking_plugin(tmp_path, api.url)),
            OTEL_EXPORTER_OTLP_ENDPOINT=collector.url,
        )
        with holmes_server(home) as server, server.client() as client:
            shown = shown_of(client, investigated(client)["id"])
        failed = [span for span in collector.spans() if span.is_error]
    assert "failed with exit code 7: refused: password=(REDACTED:password:" in shown
    assert [span.name for span in failed] == ["execute_tool kubernetes_logs"]
    assert_masked(repr(failed), server.log, kept_by(home), shown)
