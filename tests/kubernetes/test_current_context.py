"""Programs that read only kubeconfig files use the chosen context."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from kubernetes.config.kube_config import KubeConfigMerger

from holmes.kubernetes.current_context import current_context
from holmes.values.environment import Environment


def kubeconfig(file: Path, current: str, *contexts: str) -> Path:
    named = [{"name": each, "context": {"cluster": each, "user": ""}} for each in contexts]
    clusters = [{"name": each, "cluster": {"server": f"https://{each}"}} for each in contexts]
    file.parent.mkdir(exist_ok=True, parents=True)
    file.write_text(
        json.dumps(
            {"apiVersion": "v1", "kind": "Config", "current-context": current, "contexts": named, "clusters": clusters}
        )
    )
    return file


def seen_by_kubectl(environment: Environment) -> str:
    command = [
        str(Path(sys.executable).with_name("kubectl")),
        "config",
        "view",
        "--minify",
        "-o",
        "jsonpath={.clusters[0].cluster.server}",
    ]
    return subprocess.run(command, env=environment.as_dict(), capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("is_default", [True, False])
def test_kubectl_and_the_python_client_see_the_chosen_context(tmp_path: Path, *, is_default: bool) -> None:
    file = kubeconfig(tmp_path / ".kube" / "config", "eu", "eu", "us")
    variables = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "HOLMES_KUBE_CONTEXT": "us"}
    environment = Environment.of(variables if is_default else {**variables, "KUBECONFIG": str(file)})
    with current_context(environment) as own:
        assert seen_by_kubectl(own) == "https://us"
        assert KubeConfigMerger(own.as_dict()["KUBECONFIG"]).config.value["current-context"] == "us"
        (made, *_) = own.as_dict()["KUBECONFIG"].split(os.pathsep)
    assert not Path(made).exists()
    assert seen_by_kubectl(environment) == "https://eu"


def test_without_a_chosen_context_nothing_changes() -> None:
    environment = Environment.of({"KUBECONFIG": "/k"})
    with current_context(environment) as own:
        assert own is environment
