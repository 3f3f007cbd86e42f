"""What compaction cost stands in command line, API, page and metrics alike, for each model, and is what was billed."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.command_line import Home, read_report
from tests.support.holmes_server import holmes_server
from tests.support.openai_server import Body, OpenAIServer, Reply, Scripted, Usage, call

KEY = "key-of-the-test"
PRICES = {"scripted": 0.001, "writer": 0.0001}
USAGES = {
    "scripted": Usage(prompt_tokens=5_000, completion_tokens=40),
    "writer": Usage(prompt_tokens=701, completion_tokens=31),
}
MOST_REPLIES = 40
SUMMARY = "## Findings\nThe numbers that were counted are of no interest so far, nothing was found."
CONFIG = """
toolsets:
  filler:
    description: for tests
    tools:
      - name: count
        description: Counts from a number.
        command: "seq {{ first }} {{ last }}"
"""


@dataclass
class Bill:
    """What the provider charged, by the name of the model."""

    calls: Counter[str] = field(default_factory=Counter)

    def tokens(self, model: str) -> int:
        usage = USAGES[model]
        return self.calls[model] * (usage.prompt_tokens + usage.completion_tokens)

    def cost(self, model: str) -> float:
        return self.tokens(model) * PRICES[model]

    def respond(self, body: Body) -> Scripted:
        """Calls a tool until somebody wrote a summary, then answers."""
        name = str(body["model"])
        self.calls[name] += 1
        if name == "writer":
            return Reply(text=SUMMARY, usage=USAGES[name])
        if self.calls["writer"] or self.calls[name] > MOST_REPLIES:
            return Reply(text="Root cause: nothing.", usage=USAGES[name])
        first = 10_000 * self.calls[name]
        return Reply(tool_calls=(call("count", first=str(first), last=str(first + 400)),), usage=USAGES[name])


@pytest.fixture
def bill() -> Bill:
    return Bill()


@pytest.fixture
def home(tmp_path: Path, bill: Bill) -> Iterator[Home]:
    with OpenAIServer(bill.respond) as provider:
        models = {
            name: {
                "model": f"openai/{name}",
                "api_base": provider.base_url,
                "api_key": "any",
                "input_cost_per_token": price,
                "output_cost_per_token": price,
                "custom_args": {"max_context_size": 20_000},
            }
            for name, price in PRICES.items()
        }
        models["scripted"]["context"] = {"summary_model": "writer"}
        (tmp_path / "models.json").write_text(json.dumps(models))
        yield Home.make(
            tmp_path / "home",
            config=CONFIG,
            MODEL="scripted",
            HOLMES_PROMPT="full",
            MODEL_LIST_FILE_LOCATION=str(tmp_path / "models.json"),
            HOLMES_API_KEY=KEY,
        )


def test_the_command_line_says_what_each_model_billed(home: Home, bill: Bill, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    done = home.run("ask", "-n", "--demo", "--log-costs", "--json-output-file", str(report), "why?")
    assert done.exit_code == 0, done.stderr
    assert bill.calls["writer"] > 0
    (share,) = read_report(report)["cost_split"]["compaction"]["by_model"]
    _check_share(share, bill)
    stats = read_report(report)["stats"]
    assert stats["prompt_tokens"] + stats["completion_tokens"] == bill.tokens("scripted") + bill.tokens("writer")
    assert stats["cost"] == pytest.approx(bill.cost("scripted") + bill.cost("writer"))
    lines = [line for line in done.stderr.splitlines() if "summary" in line and "writer ·" in line]
    assert len(lines) == 1, done.stderr
    assert "of the total, by writer" in done.stderr


@pytest.mark.timeout(180)
def test_api_page_and_metrics_say_the_same(home: Home, bill: Bill) -> None:
    with holmes_server(home, "--demo") as server, server.client(KEY) as client:
        address = client.post("/api/investigations", json={"question": "why?"}).headers["location"]
        deadline = time.monotonic() + 90
        while (record := client.get(address).json())["state"] not in {"answered", "failed"}:
            assert time.monotonic() < deadline
            time.sleep(0.3)
        assert record["state"] == "answered", record["error"]
        events = client.get(f"{address}/events", headers={"accept": "application/json"}).json()["events"]
        page = client.get(address.removeprefix("/api")).text
        metrics = client.get("/metrics").text
        billed = Bill(calls=Counter(bill.calls))
        bill.calls.clear()
        chat = client.post("/api/chat", json={"ask": "why?"}, timeout=90).json()
    assert billed.calls["writer"] > 0
    for metadata, charged in ((record["metadata"], billed), (chat["metadata"], bill)):
        costs = metadata["costs"]
        (share,) = costs["compaction_by_model"]
        _check_share(share, charged)
        assert costs["compaction_tokens"] == share["total_tokens"]
        assert costs["total_tokens"] == charged.tokens("scripted") + charged.tokens("writer")
        assert costs["total_cost"] == pytest.approx(charged.cost("scripted") + charged.cost("writer"))
    counted = [event["data"]["metadata"]["max_output_tokens"] for event in events if event["event"] == "token_count"]
    assert set(map(type, counted)) == {int}
    assert chat["metadata"]["max_output_tokens"] == counted[-1]
    assert f"writer: {billed.calls['writer']} call" in page
    for model, purpose in (("writer", "compaction"), ("scripted", "investigation")):
        assert _metric(metrics, "holmes_llm_cost_dollars_total", model, purpose) == pytest.approx(billed.cost(model))
        kinds = [
            _metric(metrics, "holmes_llm_tokens_total", model, purpose, kind=kind) for kind in ("prompt", "completion")
        ]
        assert sum(kinds) == billed.tokens(model)
        assert _metric(metrics, "holmes_llm_calls_total", model, purpose) == billed.calls[model]


def _check_share(share: dict[str, Any], bill: Bill) -> None:
    assert share["model"] == "writer"
    assert share["calls"] == bill.calls["writer"]
    assert share["total_tokens"] == bill.tokens("writer")
    assert share["cost"] == pytest.approx(bill.cost("writer"))


def _metric(text: str, name: str, model: str, purpose: str, **more: str) -> float:
    wanted = {"model": model, "purpose": purpose, **more}
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return sum(each.value for each in samples if each.name == name and wanted.items() <= each.labels.items())
