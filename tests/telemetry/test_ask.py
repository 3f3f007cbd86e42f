"""`holmes ask` as users run it, with a provider, a cluster and a collector that are real servers."""

from __future__ import annotations

from pathlib import Path

from tests.support.command_line import Home, provider_config
from tests.support.openai_server import OpenAIServer, Reply, Usage, call
from tests.telemetry.otlp_collector import OtlpCollector


def test_a_question_becomes_a_trace(kubeconfig: Path, tmp_path: Path) -> None:
    calls = (call("kubectl_get", kind="pod"), call("no_such_tool"))
    usage = Usage(prompt_tokens=1_200, completion_tokens=30)
    script = [Reply(tool_calls=calls, usage=usage), Reply(text="It is the image.", usage=usage)]
    with OtlpCollector() as collector, OpenAIServer(script) as provider:
        home = Home.make(
            tmp_path / "home",
            config=provider_config(provider.base_url),
            KUBECONFIG=str(kubeconfig),
            OTEL_EXPORTER_OTLP_ENDPOINT=collector.url,
        )
        done = home.run("ask", "-n", "why is checkout failing?")
        assert (done.exit_code, done.stdout) == (0, "It is the image.\n")
        root, children = collector.root(), collector.children()
    assert [span.name for span in children if span.name.startswith("chat")] == ["chat scripted", "chat scripted"]
    assert len([span for span in children if span.name.startswith("execute_tool")]) == 2
    assert root.attributes["holmes.source"] == "cli"
    assert root.attributes["gen_ai.provider.name"] == "openai"
    assert root.attributes["gen_ai.usage.input_tokens"] == 2_400
    assert "checkout" not in repr(collector.spans())
    assert "It is the image" not in repr(collector.spans())


def test_a_collector_that_is_away_changes_neither_the_answer_nor_the_exit_code(
    kubeconfig: Path, tmp_path: Path
) -> None:
    with OpenAIServer([Reply(text="It is the image.")]) as provider:
        home = Home.make(
            tmp_path / "home",
            config=provider_config(provider.base_url),
            KUBECONFIG=str(kubeconfig),
            OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9",
        )
        done = home.run("ask", "-n", "why?")
    assert (done.exit_code, done.stdout) == (0, "It is the image.\n")
    assert 1 <= len([line for line in done.stderr.splitlines() if line.startswith("traces: ")]) <= 2
    assert "Traceback" not in done.stderr
