"""The whole way of an alert, with every part real but Slack: a fault on a real cluster, its metrics in Prometheus, a
rule that fires, the webhook of Alertmanager, `holmes serve`, the root cause in Slack, in the API and in a browser; and
back again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import sync_playwright

from tests.cluster.fixtures import Cluster, apply_fault, wait_until
from tests.services.fixtures import RunMonitor
from tests.support.command_line import Home
from tests.support.holmes_server import HolmesServer, holmes_server
from tests.support.slack_server import SlackMessage, SlackServer
from tests.support.state_exporter import state_exporter

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(300)]

API_KEY = "api-key-of-the-test"
WEBHOOK_KEY = "webhook-key-of-the-test"
CAUSE = "payments-settings"
CONFIG = """
model: builtin/triage
cluster_name: shop-test
alerts:
  destinations:
    oncall: {{type: slack, token: "{{{{ env.SLACK_TOKEN }}}}", channel: "#alerts", api_url: {api_url}}}
"""
RULES = {
    "KubeContainerWaiting": "sum by (namespace, pod, container) (kube_pod_container_status_waiting_reason) > 0",
    "KubeDeploymentReplicasMismatch": "kube_deployment_spec_replicas > kube_deployment_status_replicas_available",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """Everything between the fault and the people."""

    server: HolmesServer
    slack: SlackServer

    def get(self, path: str) -> dict[str, Any]:
        with self.server.client(API_KEY) as client:
            answer = client.get(path)
        assert answer.status_code == httpx.codes.OK, answer.text
        content = answer.json()
        assert isinstance(content, dict)
        return content

    def incident(self) -> dict[str, Any]:
        """The one incident."""
        (incident,) = self.get("/api/incidents")["incidents"]
        assert isinstance(incident, dict)
        return incident

    def root(self) -> SlackMessage:
        """The one message in the channel."""
        (root,) = self.slack.messages("alerts")
        return root


@pytest.fixture
def chain(
    cluster: Cluster, namespace: str, prometheus: RunMonitor, alertmanager: RunMonitor, tmp_path: Path
) -> Iterator[Chain]:
    """Prometheus, Alertmanager, Holmes and Slack, connected and running."""
    with ExitStack() as stack:
        slack = stack.enter_context(SlackServer())
        config = CONFIG.format(api_url=slack.api_url)
        variables = {"HOLMES_API_KEY": API_KEY, "HOLMES_WEBHOOK_KEY": WEBHOOK_KEY, "SLACK_TOKEN": slack.token}
        home = Home.make(tmp_path / "home", config=config, KUBECONFIG=str(cluster.viewer), **variables)
        server = stack.enter_context(holmes_server(home))
        manager = stack.enter_context(alertmanager(alertmanager_config(server.url)))
        target = stack.enter_context(state_exporter(cluster, namespace))
        stack.enter_context(prometheus(prometheus_config(target, manager.address), rules=rules()))
        yield Chain(server=server, slack=slack)


def alertmanager_config(url: str) -> dict[str, object]:
    """As in docs/deploy.md, with the patience of a test."""
    route = {
        "receiver": "holmes",
        "group_by": ["namespace"],
        "group_wait": "1s",
        "group_interval": "1s",
        "repeat_interval": "1h",
    }
    webhook = {
        "url": f"{url}/api/alerts/alertmanager",
        "send_resolved": True,
        "http_config": {"authorization": {"type": "Bearer", "credentials": WEBHOOK_KEY}},
    }
    return {"route": route, "receivers": [{"name": "holmes", "webhook_configs": [webhook]}]}


def prometheus_config(target: str, manager: str) -> dict[str, object]:
    job = {"job_name": "kube-state-metrics", "honor_labels": True, "static_configs": [{"targets": [target]}]}
    return {
        "global": {"scrape_interval": "2s", "scrape_timeout": "2s", "evaluation_interval": "1s"},
        "scrape_configs": [job],
        "alerting": {"alertmanagers": [{"static_configs": [{"targets": [manager]}]}]},
    }


def rules() -> dict[str, object]:
    alerts = [
        {"alert": name, "expr": expression, "for": "2s", "labels": {"severity": "warning"}}
        for name, expression in RULES.items()
    ]
    return {"groups": [{"name": "kubernetes-apps", "rules": alerts}]}


def shown_in_a_browser(chromium: Path, url: str) -> str:
    """What somebody reads who logs in at the page and opens the incident."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(url)
        page.locator("input[type=password]").fill(API_KEY)
        page.keyboard.press("Enter")
        page.locator("main a[href*='/incidents/']").first.click()
        page.wait_for_url("**/incidents/*")
        text = page.locator("main").inner_text()
        browser.close()
    return text


def test_the_root_cause_of_a_firing_alert_reaches_people_and_its_end_does_too(
    chain: Chain, cluster: Cluster, namespace: str, chromium_path: Path
) -> None:
    apply_fault(cluster, namespace, "missing-configmap")
    answer = chain.slack.wait_for(
        lambda message: bool(message.thread_ts) and CAUSE in message.shown, timeout_seconds=120
    )

    root = chain.root()
    assert answer.thread_ts == root.ts
    assert CAUSE in chain.slack.wait_for(lambda message: message.ts == root.ts and CAUSE in message.shown).shown
    incident = chain.incident()
    assert (incident["state"], incident["severity"]) == ("open", "warning")
    assert CAUSE in incident["root_cause"]
    alerts = wait_until("both alerts", lambda: alerts_of(chain), lambda alerts: len(alerts) == len(RULES))
    assert {alert["labels"]["alertname"] for alert in alerts} == set(RULES)
    assert all(alert["investigation_id"] for alert in alerts)
    assert CAUSE in shown_in_a_browser(chromium_path, chain.server.url)

    cluster.run("create", "configmap", CAUSE, f"--namespace={namespace}")
    chain.slack.wait_for(lambda message: message.ts == root.ts and "Resolved" in message.shown, timeout_seconds=120)
    incident = chain.incident()
    assert incident["state"] == "closed"
    assert CAUSE in incident["root_cause"]
    assert {alert["status"] for alert in alerts_of(chain)} == {"resolved"}
    assert WEBHOOK_KEY not in chain.server.log


def alerts_of(chain: Chain) -> list[dict[str, Any]]:
    incident = chain.get(f"/api/incidents/{chain.incident()['id']}")
    alerts: list[dict[str, Any]] = incident["alerts"]
    return alerts
