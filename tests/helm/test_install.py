"""`helm install` on the real cluster with a real image: the pod serves, is confined, and outlives an upgrade."""

from __future__ import annotations

import json
import re
import shutil
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from holmes.values.json_types import JsonObject
from tests.cluster.fixtures import Cluster
from tests.cluster.layout import NODE_NAME, REGISTRY
from tests.helm.chart import CHART, ROOT, Helm
from tests.helm.release import IMAGE, VALUES, Release, place_for_release
from tests.helm.value_sets import HOLMESGPT
from tests.support import readme

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(400), pytest.mark.usefixtures("image")]


@pytest.fixture
def place(cluster: Cluster, chart_helm: Helm) -> Iterator[Release]:
    """A namespace without a release."""
    made = place_for_release(cluster, chart_helm)
    yield made
    cluster.run("delete", "namespace", made.namespace, "--wait=false")


@pytest.fixture(scope="module")
def release(cluster: Cluster, chart_helm: Helm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Release]:
    made = place_for_release(cluster, chart_helm)
    namespace, helm = made.namespace, made.helm
    _make_volume(cluster, namespace, tmp_path_factory.mktemp("release"))
    try:
        done = helm.attempt(
            "install", "holmes", str(CHART), f"--namespace={namespace}", "--wait", "--timeout=110s", values=VALUES
        )
        assert done.returncode == 0, (done.stderr, cluster.run("describe", "pods", f"--namespace={namespace}"))
        yield made
        made.helm_run("uninstall", "holmes")
    finally:
        cluster.run("delete", "namespace", namespace, "--wait=false")
        cluster.run("delete", "persistentvolume", namespace, "--wait=false")


def _make_volume(cluster: Cluster, namespace: str, folder: Path) -> None:
    """There is no provisioner: a folder of the node, reserved for the claim of the release."""
    (folder / "volume").mkdir()
    node = {"key": "kubernetes.io/hostname", "operator": "In", "values": [NODE_NAME]}
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": namespace},
        "spec": {
            "capacity": {"storage": "100Gi"},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "local": {"path": str(folder / "volume")},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [node]}]}},
            "claimRef": {"namespace": namespace, "name": "holmes"},
        },
    }
    (folder / "volume.json").write_text(json.dumps(volume))
    cluster.run("create", f"--filename={folder / 'volume.json'}")


def test_the_pod_is_ready_and_helm_test_passes(release: Release) -> None:
    pods = json.loads(release.kubectl("get", "pods", "--output=json"))["items"]
    assert [status["ready"] for status in pods[0]["status"]["containerStatuses"]] == [True]
    shown = release.helm_run("test", "holmes", "--timeout=100s", "--logs")
    assert "Phase:          Succeeded" in shown, shown


def test_the_container_has_no_rights_and_writes_only_where_it_may(release: Release) -> None:
    status = dict(line.split(":\t", 1) for line in release.inside("cat /proc/self/status").splitlines())
    assert status["Uid"].split() == ["10001"] * 4
    assert {status[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
    folders = ("/", "/opt/holmes", "/etc/holmes", "/usr/local/bin")
    refusals = release.inside("; ".join(f"(: > {folder}/probe) || true" for folder in folders))
    assert refusals.count("Read-only file system") == len(folders), refusals
    assert release.inside(": > /tmp/probe && : > /var/lib/holmes/probe && echo written").strip() == "written"


def test_kubectl_and_helm_inside_work_and_see_no_secret(release: Release) -> None:
    assert "holmes-" in release.inside("kubectl get pods --all-namespaces")
    assert "Secret" not in release.inside("kubectl get deployments")
    refused = release.inside("kubectl get secrets || true")
    assert "cannot list resource" in refused
    assert 'resource "secrets"' in refused
    assert release.inside("helm version --short").startswith("v")


def test_a_scan_from_inside_finds_nothing_wrong_and_misses_nothing_but_secrets(release: Release) -> None:
    report = release.inside(f"HOME=/tmp holmes scan --namespace {release.namespace} || true")
    assert "No incidents found" in report, report
    assert set(re.findall(r"may not\s+list (\w+)", report)) == {"secrets"}, report


def test_an_upgrade_keeps_the_keys_and_the_data_and_restarts_for_a_new_configuration(release: Release) -> None:
    before = release.keys()
    assert {len(b64decode(str(key))) for key in before.values()} == {40}
    assert len(set(map(str, before.values()))) == 2
    release.inside("echo kept > /var/lib/holmes/witness")
    pod = release.kubectl("get", "pods", "--output=name")
    changed = {**VALUES, "config": {"cluster_name": "renamed"}}
    release.helm_run("upgrade", "holmes", str(CHART), "--wait", "--timeout=110s", values=changed)
    assert release.keys() == before
    assert release.inside("cat /var/lib/holmes/witness").strip() == "kept"
    assert "renamed" in release.inside("cat /etc/holmes/config.yaml")
    assert release.kubectl("get", "pods", "--output=name") != pod
    assert "investigations.db" in release.inside("cd /var/lib/holmes/.holmes && echo *")


def test_nothing_is_left_of_the_job_that_made_the_keys(release: Release) -> None:
    left = release.kubectl("get", "jobs,serviceaccounts,roles,rolebindings", "--output=name")
    assert "-keys" not in left, left


def test_a_values_file_with_every_key_of_holmesgpt_installs(place: Release) -> None:
    values: JsonObject = {
        **HOLMESGPT,
        "registry": REGISTRY,
        "image": IMAGE,
        "resources": {"requests": {"cpu": "10m", "memory": "256Mi"}},
        "persistence": {"enabled": False},
    }
    shown = place.helm_run("install", "holmes", str(CHART), "--wait", "--timeout=110s", values=values)
    assert "These values have no effect: sentryDSN" in shown
    assert "CERTIFICATE" in place.inside("env")
    assert place.inside("cat /etc/holmes/model_list.yaml").startswith("gpt:")
    place.helm_run("uninstall", "holmes")


def test_the_command_of_the_readme_installs_the_chart(place: Release, tmp_path: Path) -> None:
    """As it is written, but for the namespace."""
    (name, chart, *options) = readme.install_commands()["helm install"]
    own = [place.namespace if option == "holmes" else option for option in options]
    _make_volume(place.cluster, place.namespace, tmp_path)
    try:
        place.helm.run("install", name, str(ROOT / chart), *own)
        place.kubectl("rollout", "status", "deployment/holmes", "--timeout=110s")
        place.helm_run("uninstall", name)
    finally:
        place.cluster.run("delete", "persistentvolume", place.namespace, "--wait=false")


# What the chart rendered before a Job made the keys.
EARLIER_SECRET: Final = """
{{- $old := dig "data" dict (lookup "v1" "Secret" .Release.Namespace (include "holmes.fullname" .) | default dict) }}
apiVersion: v1
kind: Secret
metadata:
  name: {{ include "holmes.fullname" . }}
  labels:
    {{- include "holmes.labels" . | nindent 4 }}
type: Opaque
data:
  {{- range $key := list "api-key" "webhook-key" }}
  {{ $key }}: {{ get $old $key | default (randAlphaNum 40 | b64enc) }}
  {{- end }}
"""


def test_an_upgrade_from_a_chart_that_rendered_the_keys_keeps_them(place: Release, tmp_path: Path) -> None:
    earlier = tmp_path / "holmes"
    shutil.copytree(CHART, earlier)
    (earlier / "templates/keys.yaml").unlink()
    (earlier / "templates/secret.yaml").write_text(EARLIER_SECRET)
    values: JsonObject = {**VALUES, "replicas": 0, "persistence": {"enabled": False}}
    place.helm_run("install", "holmes", str(earlier), values=values)
    before = place.keys()
    # Also when somebody names the Secret that is there: Helm would delete what is no longer rendered.
    for changed in ({**values, "auth": {"existingSecret": "holmes"}}, values):
        place.helm_run("upgrade", "holmes", str(CHART), "--timeout=110s", values=changed)
        assert place.keys() == before
    place.helm_run("uninstall", "holmes")
    assert place.keys() == before
    place.helm_run("install", "holmes", str(CHART), "--timeout=110s", values=values)
    assert place.keys() == before
