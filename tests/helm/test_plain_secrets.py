"""No secret reaches the ConfigMap, whatever key it stands under and whatever form it has."""

from __future__ import annotations

from typing import Final

import pytest

from holmes.core.json_types import JsonObject, JsonValue
from tests.helm.chart import CHART, Helm

# Nothing here is a real secret; composed, so that nothing looks like one either.
RANDOM: Final = "a1B2c3D4" * 4
SLACK: Final = "https://hooks.slack." + f"com/services/T0/B0/{RANDOM}"


def destination(url: str) -> JsonObject:
    return {"config": {"alerts": {"destinations": {"team": {"type": "webhook", "url": url}}}}}


REFUSED: Final[tuple[tuple[JsonObject, str], ...]] = (
    ({"config": {"extra_headers": {"Authorization": "Bearer " + RANDOM}}}, "config.extra_headers.Authorization"),
    ({"config": {"extra_headers": {"X-Api-Key": "hunter2"}}}, "config.extra_headers.X-Api-Key"),
    ({"config": {"extra_headers": {"Ocp-Apim-Subscription-Key": "hunter2"}}}, "Ocp-Apim-Subscription-Key"),
    ({"config": {"extra_headers": '{"api-key": "hunter2"}'}}, "config.extra_headers.api-key"),
    ({"config": {"extra_headers": {"X-Company": "Basic aHVudGVyMg=="}}}, "config.extra_headers.X-Company"),
    ({"config": {"alertmanager_password": "hunter2"}}, "config.alertmanager_password"),
    ({"config": {"alertmanager_password": 12345678}}, "config.alertmanager_password"),
    ({"config": {"alertmanager_url": "http://me:hunter2@alerts:9093"}}, "config.alertmanager_url"),
    ({"config": {"slack_token": "hunter2"}}, "config.slack_token"),
    ({"config": {"jira_api_key": "hunter2"}}, "config.jira_api_key"),
    ({"config": {"github_pat": "hunter2"}}, "config.github_pat"),
    ({"config": {"api_base": "https://proxy.example.com/v1?api_key=hunter2"}}, "config.api_base"),
    ({"config": {"api_base": f"https://{RANDOM}@proxy.example.com/v1"}}, "config.api_base"),
    ({"config": {"server": {"approval_signing_key": "hunter2hunter2"}}}, "config.server.approval_signing_key"),
    ({"config": {"context": {"summary_model": {"model": "m", "api_key": "hunter2"}}}}, "summary_model.api_key"),
    ({"config": {"system_prompt_additions": "our token is sk-" + RANDOM}}, "config.system_prompt_additions"),
    (destination(SLACK), "config.alerts.destinations.team.url"),
    (destination("https://chat.example.com/hook?token=hunter2"), "config.alerts.destinations.team.url"),
    (destination("https://me:hunter2@chat.example.com/hook"), "config.alerts.destinations.team.url"),
    (destination(f"https://chat.example.com/hooks/{RANDOM}"), "config.alerts.destinations.team.url"),
    ({"modelList": {"m": {"model": "x", "aws_secret_access_key": "hunter2"}}}, "modelList.m.aws_secret_access_key"),
    ({"modelList": {"m": {"model": "x", "extra_headers": {"Cookie": "hunter2"}}}}, "modelList.m.extra_headers.Cookie"),
    ({"toolsets": {"grafana": {"config": {"api_key": "hunter2"}}}}, "toolsets.grafana.config.api_key"),
    (
        {"mcp_servers": {"docs": {"config": {"headers": {"Authorization": "Bearer hunter2"}}}}},
        "mcp_servers.docs.config.headers.Authorization",
    ),
)
ACCEPTED: Final[tuple[JsonObject, ...]] = (
    {"config": {"extra_headers": {"Authorization": "Bearer {{ env.TOKEN }}", "X-Team": "shop"}}},
    {"config": {"extra_headers": '{"api-key": "{{ env.KEY }}", "anthropic-beta": "context-1m-2025-08-07"}'}},
    {"config": {"alertmanager_url": "http://me:{{ env.PASSWORD }}@alerts:9093"}},
    {"config": {"cluster_name": "production", "server": {"public_url": "https://holmes.example.com/a/b-c"}}},
    {"config": {"context": {"max_tokens": 100_000, "keep_recent_tokens": 5_000}}},
    {"config": {"thinking": {"type": "enabled", "budget_tokens": 5000}, "fallback_models": ["a", "b"]}},
    {"config": {"api_base": "https://shop.openai.azure.com/openai/deployments/gpt-4o-2024-08-06"}},
    destination("https://chat.example.com/hooks/holmes"),
    destination("{{ env.WEBHOOK }}"),
    {"modelList": {"m": {"model": "vertex_ai/x", "vertex_credentials": "/etc/gcp/key.json"}}},
    {"modelList": {"m": {"model": "x", "input_cost_per_token": 3e-6, "output_cost_per_token": "1.5e-5"}}},
    {"modelList": {"m": {"model": "bedrock/arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-v1:0"}}},
    {"mcp_servers": {"m": {"config": {"extra_headers": {"Authorization": "{{ request_context.headers['X-Auth'] }}"}}}}},
    {"toolsets": {"grafana": {"config": {"api_key": "{{ env.GRAFANA_KEY }}", "url": "https://grafana.example.com"}}}},
)  # fmt: skip


@pytest.mark.parametrize(("values", "place"), REFUSED)
def test_a_secret_in_plain_text_is_refused_with_its_place_and_not_with_itself(
    values: JsonObject, place: str, chart_helm: Helm
) -> None:
    done = chart_helm.attempt("template", "holmes", str(CHART), values=values)
    assert done.returncode == 1
    assert f"{place} would stand in a ConfigMap in plain text" in done.stderr
    assert "additionalEnvVars" in done.stderr
    assert not {text for text in texts(values) if text in done.stderr}


@pytest.mark.parametrize("values", ACCEPTED)
def test_references_and_everyday_values_are_accepted(values: JsonObject, chart_helm: Helm) -> None:
    assert chart_helm.template(values).kinds() >= {"ConfigMap"}


def texts(value: JsonValue) -> set[str]:
    """The secret texts below `value`: all that are not everyday words."""
    if isinstance(value, dict):
        return set().union(*(texts(item) for item in value.values()))
    return {value} if isinstance(value, str) and value not in {"m", "x", "webhook"} else set()
