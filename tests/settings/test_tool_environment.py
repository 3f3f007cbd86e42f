"""What tools may see of the environment."""

from __future__ import annotations

import pytest

from holmes.settings.process import process_environment, tool_environment

CLUSTER_ACCESS = {
    "PATH": "/bin",
    "HOME": "/root",
    "LC_ALL": "C.UTF-8",
    "KUBECONFIG": "/k",
    "KUBERNETES_SERVICE_HOST": "10.0.0.1",
    "AWS_PROFILE": "prod",
    "AWS_SECRET_ACCESS_KEY": "needed by aws eks get-token",
    "AZURE_CLIENT_ID": "x",
    "GOOGLE_APPLICATION_CREDENTIALS": "/g",
    "CLOUDSDK_CONFIG": "/c",
    "https_proxy": "http://proxy",
    "SSL_CERT_FILE": "/ca",
    "XDG_CACHE_HOME": "/cache",
}
SECRETS = {
    "OPENAI_API_KEY": "sk",
    "ANTHROPIC_API_KEY": "sk",
    "AZURE_API_KEY": "sk",
    "AWS_BEARER_TOKEN_BEDROCK": "sk",
    "HOLMES_API_KEY": "server",
    "HOLMES_APPROVAL_SIGNING_KEY": "server",
    "DATABASE_PASSWORD": "of something else",
}


def test_tools_get_what_cluster_access_needs_and_no_secret_beside_it() -> None:
    assert tool_environment({**CLUSTER_ACCESS, **SECRETS}) == CLUSTER_ACCESS


def test_a_toolset_gets_the_variables_it_declares() -> None:
    assert tool_environment({"GRAFANA_TOKEN": "t", "OTHER": "o"}, ["GRAFANA_TOKEN"]) == {"GRAFANA_TOKEN": "t"}


@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "HOLMES_API_KEY", "AWS_BEARER_TOKEN_BEDROCK"])
def test_declaring_a_model_key_does_not_reveal_it(name: str) -> None:
    assert tool_environment({name: "secret"}, [name]) == {}


def test_the_environment_of_the_process_is_a_copy() -> None:
    first = dict(process_environment())
    first["ADDED"] = "x"
    assert "ADDED" not in process_environment()
