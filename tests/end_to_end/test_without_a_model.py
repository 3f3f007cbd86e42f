"""No key, no network, no cluster: Holmes still answers and says what it answers from."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command_line import Home, read_report
from tests.support.openai_server import ErrorReply, OpenAIServer

QUESTION = "why is checkout failing in namespace shop?"
SAYS_SO = "No LLM was used"
LOADED = """
import sys
from holmes.cli.main import main
try:
    main()
finally:
    sys.stderr.write("\\nLOADED " + " ".join({"litellm", "tiktoken", "openai"} & set(sys.modules)) + "\\n")
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home.make(tmp_path / "home")


def test_the_demo_answers_with_the_root_cause_two_hops_away_and_says_what_it_is(home: Home) -> None:
    done = home.run("ask", "-n", "--demo", QUESTION)

    assert done.exit_code == 0
    first = done.stdout.split("\n\n")[0]
    assert "ConfigMap shop/payments-config" in first
    assert "GATEWAY_URL" in first
    assert SAYS_SO in done.stdout
    assert "recorded demo cluster" in done.stderr


def test_the_demo_answers_without_a_library_for_models(home: Home) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADED, "ask", "-n", "--demo", QUESTION],
        env=home.environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=90,
        check=True,
    )
    assert SAYS_SO in done.stdout
    assert done.stderr.rpartition("LOADED ")[2].split() == []


def test_without_a_cluster_a_plain_question_exits_with_3_and_names_the_demo(home: Home) -> None:
    done = home.run("ask", "-n", QUESTION)

    assert done.exit_code == 3
    assert "--demo" in done.stderr
    assert done.stdout == ""


def test_a_model_that_was_named_and_has_no_key_stays_a_mistake(home: Home) -> None:
    done = home.run("ask", "-n", "--demo", "--model", "gpt-4o", QUESTION)

    assert done.exit_code == 2
    assert "OPENAI_API_KEY" in done.stderr


def test_when_the_provider_is_down_the_chain_ends_in_an_answer_without_a_model(tmp_path: Path) -> None:
    with OpenAIServer([ErrorReply(status=401, message="invalid key")]) as provider:
        config = f"model: openai/scripted\napi_base: {provider.base_url}\napi_key: not-a-secret\n"
        home = Home.make(tmp_path / "home", config=config)
        report = tmp_path / "report.json"
        done = home.run("ask", "-n", "--demo", "--json-output-file", str(report), QUESTION)

    assert done.exit_code == 0
    assert "builtin/triage" in done.stderr
    assert "ConfigMap shop/payments-config" in done.stdout
    assert SAYS_SO in done.stdout
    assert SAYS_SO in json.dumps(read_report(report))


def test_the_end_of_the_chain_can_be_switched_off(tmp_path: Path) -> None:
    with OpenAIServer([ErrorReply(status=401, message="invalid key")]) as provider:
        config = (
            f"model: openai/scripted\napi_base: {provider.base_url}\napi_key: not-a-secret\nbuiltin_fallback: false\n"
        )
        done = Home.make(tmp_path / "home", config=config).run("ask", "-n", "--demo", QUESTION)

    assert done.exit_code == 1
    assert SAYS_SO not in done.stdout
