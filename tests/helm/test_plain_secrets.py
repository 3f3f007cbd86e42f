"""No secret reaches the ConfigMap, whatever key it stands under and whatever form it has."""

from __future__ import annotations

from base64 import b64encode
from typing import Final
from uuid import NAMESPACE_DNS, uuid5

import pytest
import yaml

from holmes.values.json_types import JsonObject, JsonValue
from tests.helm.chart import CHART, ROOT, Helm

# Nothing here is a real secret; composed, so that nothing looks like one either.
RANDOM: Final = "a1B2c3D4" * 4
SLACK: Final = "https://hooks.slack." + f"com/services/T0/B0/{RANDOM}"


def destination(url: str) -> JsonObject:
    return {"config": {"alerts": {"destinations": {"team": {"type": "webhook", "url": url}}}}}


def server(**config: JsonValue) -> JsonObject:
    return {"mcp_servers": {"docs": {"config": config}}}


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
    # Headers and variables as lists and as texts.
    ({"config": {"extra_headers": [{"name": "X-Api-Key", "value": "hunter2"}]}}, "config.extra_headers.0.value"),
    ({"config": {"extra_headers": '[{"name": "X-Api-Key", "value": "hunter2"}]'}}, "config.extra_headers.0.value"),
    ({"config": {"extra_headers": "Authorization: hunter2"}}, "config.extra_headers"),
    ({"config": {"extra_headers": {"X-Company-Id": RANDOM}}}, "config.extra_headers.X-Company-Id"),
    ({"modelList": {"m": {"model": "x", "headers": ["X-Api-Key=hunter2"]}}}, "modelList.m.headers.0"),
    (server(args=["--api-key", "hunter2"]), "mcp_servers.docs.config.args.1"),
    (server(args=["--password=hunter2"]), "mcp_servers.docs.config.args.0"),
    (server(args=["run", "-e", "GITHUB_TOKEN=hunter2"]), "mcp_servers.docs.config.args.2"),
    (server(env={"DB_PASS": "hunter2"}), "mcp_servers.docs.config.env.DB_PASS"),
    ({"toolsets": {"g": {"config": {"basic_auth": {"value": "hunter2"}}}}}, "toolsets.g.config.basic_auth.value"),
    # Everywhere in a toolset, which is a part of the same ConfigMap.
    ({"toolsets": {"g": {"tools": [{"name": "t", "env": {"TOKEN": "hunter2"}}]}}}, "toolsets.g.tools.0.env.TOKEN"),
    ({"custom_toolsets": {"g": {"llm_instructions": "ours is sk-" + RANDOM}}}, "custom_toolsets.g.llm_instructions"),
    ({"toolsets": {"g": {"transformers": [{"config": {"api_key": "hunter2"}}]}}}, "transformers.0.config.api_key"),
    # Forms within longer texts, in base64, and what only looks like a reference.
    ({"config": {"system_prompt_additions": "The database:\npassword=hunter2\n"}}, "config.system_prompt_additions"),
    ({"config": {"x": b64encode(f"sk-{RANDOM}".encode()).decode()}}, "config.x"),
    ({"modelList": {"m": {"model": "x", "api_key": "{{ env.KEY or 'hunter2' }}"}}}, "modelList.m.api_key"),
    ({"modelList": {"m": {"model": "x", "api_key": "/hunter2.x"}}}, "modelList.m.api_key"),
    # Addresses.
    (destination(f"https://chat.example.com/hooks/{RANDOM}?wait=true"), "config.alerts.destinations.team.url"),
    (destination(f"https://chat.example.com/{uuid5(NAMESPACE_DNS, 'a')}/in"), "config.alerts.destinations.team.url"),
    (destination("https://hunter2hunter2:@chat.example.com"), "config.alerts.destinations.team.url"),
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
    # Sentences that begin with a telling word, labels of alerts, names and addresses of secrets.
    {"config": {"system_prompt_additions": "Basic troubleshooting"}},
    {"config": {"system_prompt_additions": "Token kubernetes-authentication-flow: see https://wiki.example.com/page1"}},
    {"config": {"system_prompt_additions": "Is the password: expired? Is the API key: revoked?"}},
    {"config": {"alerts": {"routes": [{"name": "a", "match": {"secret": "database", "token": "expired"}}]}}},
    {"config": {"api_base": "https://models.example.com/deployments/gpt4o_2024_11_20_production?api-version=1"}},
    {"modelList": {"m": {"model": "x", "api_key": "EMPTY"}}},
    {"modelList": {"m": {"model": "azure/x", "azure_ad_token": "oidc/azure"}}},
    {"modelList": {"m": {"model": "x", "aws_web_identity_token": "/var/run/secrets/eks.amazonaws.com/token"}}},
    {"modelList": {"m": {"model": "x", "input_cost_per_audio_token": 1e-6, "prompt_cache_key": "holmes"}}},
    server(oauth={"authorization_url": "https://id.example.com/authorize", "token_url": "https://id.example.com/token"}),
    server(args=["--token", "$GITHUB_TOKEN", "--api-key=${API_KEY}"], env={"GITHUB_TOKEN": "{{ env.GITHUB_TOKEN }}"}),
    server(headers={"Authorization": "{{ 'Bearer ' ~ env.TOKEN }}"}),
    {"toolsets": {"aws": {"config": {"auth": "iam", "api_key_env": "GRAFANA_KEY", "secret_name": "grafana"}}}},
    {"toolsets": {"web": {"tools": [{"name": "t", "command": 'curl -H "Authorization: Bearer ${TOKEN}" {{ url }}'}]}}},
    {"toolsets": {"web": {"tools": [{"name": "t", "script": "curl 'https://example.com/?key={{ k }}&token=$T'"}]}}},
    {"toolsets": {"web": {"docs_url": "https://a.example.com/#token=1", "icon_url": f"https://a.example.com/{RANDOM}/a"}}},
    {"toolsets": {"web": {"tools": [{"name": "t", "parameters": {"token": {"description": "which"}}}]}}},
    {"toolsets": yaml.safe_load((ROOT / "toolsets" / "kubernetes.yaml").read_text(encoding="utf-8"))["toolsets"]},
)  # fmt: skip


@pytest.mark.parametrize(("values", "place"), REFUSED)
def test_a_secret_in_plain_text_is_refused_with_its_place_and_not_with_itself(
    values: JsonObject, place: str, chart_helm: Helm
) -> None:
    done = chart_helm.attempt("template", "holmes", str(CHART), values=values)
    assert done.returncode == 1
    assert f"{place} would be stored in a ConfigMap in plain text" in done.stderr
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
