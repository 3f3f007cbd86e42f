"""What the chart makes of twelve sets of values: what matters in each, and that the real API server takes all of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import jsonschema
import pytest
import yaml

from holmes.settings.load import load_settings
from holmes.values.json_types import JsonObject
from tests.cluster.fixtures import Cluster, create_namespace
from tests.helm.chart import CHART, DATABASE, Helm, Manifests, at, items
from tests.helm.value_sets import HOLMESGPT, VALUE_SETS

CUSTOM_KINDS: Final = {"ServiceMonitor", "AlertmanagerConfig"}
SCHEMAS: Final = Path(__file__).parent / "schemas"


@pytest.fixture(scope="module")
def rendered(chart_helm: Helm) -> dict[str, Manifests]:
    """All value sets, rendered."""
    return {name: chart_helm.template(values) for name, values in VALUE_SETS.items()}


def test_two_renderings_are_the_same(chart_helm: Helm, rendered: dict[str, Manifests]) -> None:
    for name, values in VALUE_SETS.items():
        assert chart_helm.template(values).text == rendered[name].text, name


def test_keys_are_made_by_a_job_that_may_only_create_secrets(rendered: dict[str, Manifests]) -> None:
    made = rendered["defaults"]
    assert "Secret" not in made.kinds()
    assert list(items(made.one("Role"), "rules")) == [
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]}
    ]
    job, account = made.one("Job"), made.one("ServiceAccount", component="keys")
    pod = at(job, "spec", "template", "spec")
    assert pod["serviceAccountName"] == at(account, "metadata")["name"] != made.pod()["serviceAccountName"]
    assert at(made.one("RoleBinding"), "subjects", 0)["name"] == pod["serviceAccountName"]
    container = at(pod, "containers", 0)
    assert container["image"] == made.container()["image"]
    assert container["args"] == [at(made.variables()["HOLMES_API_KEY"], "valueFrom", "secretKeyRef")["name"], "ops"]
    for key in ("securityContext",):
        assert (pod[key], container[key]) == (made.pod()[key], made.container()[key])
    for hook in (account, made.one("Role"), made.one("RoleBinding"), job):
        annotations = at(hook, "metadata", "annotations")
        assert annotations["helm.sh/hook"] == "pre-install,pre-upgrade"
        assert annotations["helm.sh/hook-delete-policy"] == "before-hook-creation,hook-succeeded"
    weights = [int(str(at(hook, "metadata", "annotations")["helm.sh/hook-weight"])) for hook in (account, job)]
    assert weights == sorted(weights)


def test_every_empty_volume_has_a_limit_that_can_be_chosen(chart_helm: Helm, rendered: dict[str, Manifests]) -> None:
    for name, made in rendered.items():
        for volume in items(made.pod(), "volumes"):
            assert "emptyDir" not in volume or at(volume, "emptyDir")["sizeLimit"], (name, volume)
    made = chart_helm.template({"persistence": {"enabled": False}, "emptyDirSizes": {"data": "9Gi", "tmp": "3Gi"}})
    sizes = {volume["name"]: at(volume, "emptyDir")["sizeLimit"] for volume in items(made.pod(), "volumes")
             if "emptyDir" in volume}  # fmt: skip
    assert sizes == {"data": "9Gi", "tmp": "3Gi"}
    for nothing in (None, {"data": None, "tmp": None}):
        made = chart_helm.template({"persistence": {"enabled": False}, "emptyDirSizes": nothing})
        limits = [at(volume, "emptyDir") for volume in items(made.pod(), "volumes") if "emptyDir" in volume]
        assert limits == [{"sizeLimit": "5Gi"}, {"sizeLimit": "1Gi"}]


def test_an_image_is_pinned_by_its_digest_everywhere(chart_helm: Helm) -> None:
    digest = f"sha256:{'0123456789abcdef' * 4}"
    made = chart_helm.template({"registry": "registry.example.com", "image": "holmes:1.2.3", "imageDigest": digest})
    jobs = [at(made.one(kind), *path) for kind, path in (
        ("Job", ("spec", "template", "spec", "containers", 0)), ("Pod", ("spec", "containers", 0)),
    )]  # fmt: skip
    images = {container["image"] for container in (made.container(), *jobs)}
    assert images == {f"registry.example.com/holmes:1.2.3@{digest}"}


def test_every_pod_gets_what_it_needs_to_be_scheduled_and_to_pull_its_image(chart_helm: Helm) -> None:
    required = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "arch", "operator": "In", "values": ["amd64"]}]}]}
    affinity: JsonObject = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    made = chart_helm.template({
        "imagePullSecrets": [{"name": "a"}],
        "serviceAccount": {"imagePullSecrets": [{"name": "b"}, {"name": "a"}]},
        "affinity": {**affinity, "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
        "nodeSelector": {"disk": "fast"},
        "tolerations": [{"operator": "Exists"}],
    })  # fmt: skip
    job, test = at(made.one("Job"), "spec", "template", "spec"), at(made.one("Pod"), "spec")
    for pod in (made.pod(), job, test):
        assert [each["name"] for each in items(pod, "imagePullSecrets")] == ["a", "b"]
        assert (pod["nodeSelector"], pod["tolerations"]) == ({"disk": "fast"}, [{"operator": "Exists"}])
    # Only the server may ask not to stand beside itself.
    assert (job["affinity"], test["affinity"]) == (affinity, affinity)
    assert "podAntiAffinity" in at(made.pod(), "affinity")


def test_pods_that_end_fit_quotas_and_have_no_sidecar_that_never_ends(rendered: dict[str, Manifests]) -> None:
    made = rendered["defaults"]
    job, test = at(made.one("Job"), "spec", "template"), made.one("Pod")
    for pod in (job, test):
        limits = at(pod, "spec", "containers", 0, "resources", "limits")
        assert set(limits) == {"cpu", "memory"}
        assert at(pod, "metadata", "labels")["sidecar.istio.io/inject"] == "false"


@pytest.mark.parametrize(
    "certificate",
    [
        {"additionalEnvVars": [{"name": "HOLMES_SSL_CERTFILE", "value": "/tls/tls.crt"}]},
        {"config": {"server": {"ssl_certfile": "/tls/tls.crt"}}},
    ],
)
def test_a_certificate_of_the_server_changes_every_address(certificate: JsonObject, chart_helm: Helm) -> None:
    made = chart_helm.template({**VALUE_SETS["monitoring"], **certificate})
    probes = ("startupProbe", "livenessProbe", "readinessProbe")
    assert {at(made.container(), probe, "httpGet")["scheme"] for probe in probes} == {"HTTPS"}
    assert at(made.one("ServiceMonitor"), "spec", "endpoints", 0)["scheme"] == "https"
    receiver = at(made.one("AlertmanagerConfig"), "spec", "receivers", 0, "webhookConfigs", 0)
    assert str(receiver["url"]).startswith("https://")
    assert "https://{os.environ" in json.dumps(made.one("Pod"))


def test_a_file_of_holmesgpt_is_taken_as_it_is(chart_helm: Helm, rendered: dict[str, Manifests]) -> None:
    made = rendered["a file of HolmesGPT"]
    assert made.variables()["CERTIFICATE"]["value"] == HOLMESGPT["certificate"]
    for pod in (made.pod(), at(made.one("Job"), "spec", "template", "spec"), at(made.one("Pod"), "spec")):
        assert not set(at(pod, "securityContext")) & {"runAsUser", "runAsGroup", "fsGroup"}
        assert at(pod, "securityContext")["runAsNonRoot"] is True
    notes = chart_helm.run("install", "holmes", str(CHART), "--dry-run=client", values=HOLMESGPT).partition("NOTES:")[2]
    assert (
        "These values have no effect: sentryDSN, enableTelemetry, enableAccountsCreate, enablePostProcessing, "
        "postProcessingPrompt, operator, mcpAddons."
    ) in notes


def test_a_key_of_holmesgpt_without_a_value_means_the_default(chart_helm: Helm) -> None:
    empty = dict.fromkeys(HOLMESGPT.keys() - {"createServiceAccount"})
    assert chart_helm.template(empty).kinds() == chart_helm.template({}).kinds()


def test_defaults_are_one_hardened_pod_with_a_claim_and_probes(rendered: dict[str, Manifests]) -> None:
    made = rendered["defaults"]
    assert made.kinds() == {
        "ServiceAccount", "Role", "RoleBinding", "Job", "ConfigMap", "PersistentVolumeClaim", "ClusterRole",
        "ClusterRoleBinding", "Service", "Deployment", "Pod",
    }  # fmt: skip
    deployment, pod, container = made.one("Deployment"), made.pod(), made.container()
    assert at(deployment, "spec", "strategy") == {"type": "Recreate"}
    assert at(container, "resources", "requests")["memory"] == "512Mi"
    assert at(pod, "securityContext")["runAsNonRoot"] is True
    assert at(pod, "securityContext", "seccompProfile") == {"type": "RuntimeDefault"}
    context = at(container, "securityContext")
    assert (context["readOnlyRootFilesystem"], context["allowPrivilegeEscalation"]) == (True, False)
    assert at(context, "capabilities") == {"drop": ["ALL"]}
    paths = {probe: at(container, probe, "httpGet")["path"] for probe in ("livenessProbe", "readinessProbe")}
    assert paths == {"livenessProbe": "/healthz", "readinessProbe": "/readyz"}
    assert {str(mount["mountPath"]) for mount in items(container, "volumeMounts")} == {
        "/etc/holmes", "/var/lib/holmes", "/tmp",
    }  # fmt: skip
    assert container["args"] == ["serve", "--config", "/etc/holmes/config.yaml"]


def test_a_service_named_holmes_does_not_overwrite_the_port(rendered: dict[str, Manifests]) -> None:
    assert rendered["defaults"].pod()["enableServiceLinks"] is False
    assert rendered["defaults"].variables()["HOLMES_PORT"]["value"] == "5050"


def test_only_the_server_gets_a_token(rendered: dict[str, Manifests]) -> None:
    made = rendered["defaults"]
    assert made.pod()["automountServiceAccountToken"] is True
    assert {account["automountServiceAccountToken"] for account in made.all("ServiceAccount")} == {False}
    assert at(made.one("Pod"), "spec")["automountServiceAccountToken"] is False


def test_the_test_pod_is_no_endpoint_of_the_service(rendered: dict[str, Manifests]) -> None:
    selector = at(rendered["defaults"].one("Service"), "spec", "selector")
    assert not selector.items() <= at(rendered["defaults"].one("Pod"), "metadata", "labels").items()
    assert (
        selector.items() <= at(rendered["defaults"].one("Deployment"), "spec", "template", "metadata", "labels").items()
    )


def test_the_configuration_is_one_that_holmes_reads(rendered: dict[str, Manifests], tmp_path: Path) -> None:
    made = rendered["models and configuration"]
    files = at(made.one("ConfigMap"), "data")
    for name, text in files.items():
        (tmp_path / name).write_text(str(text))
    environment = {
        "HOME": str(tmp_path),
        "ANTHROPIC_API_KEY": "planted",
        "MODEL_LIST_FILE_LOCATION": str(tmp_path / "model_list.yaml"),
    }
    settings = load_settings(environment, tmp_path / "config.yaml")
    assert (settings.model.model, settings.investigation.cluster_name) == ("sonnet", "production")
    assert settings.server.max_cost_per_day == 20
    assert [route.name for route in settings.alerts.routes] == ["noise"]
    assert settings.ignored_keys == ()
    assert made.variables()["MODEL_LIST_FILE_LOCATION"]["value"] == "/etc/holmes/model_list.yaml"
    assert "planted" not in made.text
    assert settings.investigations.drain_seconds < float(str(made.pod()["terminationGracePeriodSeconds"])) == 60


def test_toolsets_of_both_names_stand_in_one_file_that_the_configuration_names(rendered: dict[str, Manifests]) -> None:
    made = rendered["toolsets"]
    file = made.file("custom_toolsets.yaml")
    assert set(at(file, "toolsets")) == {"helm/core", "disk"}
    assert set(at(file, "mcp_servers")) == {"docs"}
    assert made.file("config.yaml")["custom_toolsets"] == [
        "/etc/more/toolsets.yaml",
        "/etc/holmes/custom_toolsets.yaml",
    ]


def test_kubeconfigs_of_clusters_are_files_that_the_configuration_names(
    rendered: dict[str, Manifests], tmp_path: Path
) -> None:
    made = rendered["several clusters"]
    (tmp_path / "config.yaml").write_text(str(at(made.one("ConfigMap"), "data")["config.yaml"]))
    own = load_settings({"HOME": str(tmp_path)}, tmp_path / "config.yaml").clusters
    assert {name: (str(each.kubeconfig), each.context, each.in_cluster) for name, each in own.clusters.items()} == {
        "eu.prod": ("/etc/holmes-clusters/eu.prod/kubeconfig", None, False),
        "here": ("None", None, True),
        "us": ("/etc/holmes-clusters/us/kubeconfig", "admin@us", False),
    }
    mounts = {str(each["mountPath"]): each for each in items(made.container(), "volumeMounts")}
    volumes = {str(each["name"]): each for each in items(made.pod(), "volumes")}
    for name, secret, key in (("eu.prod", "eu-kubeconfig", "kubeconfig"), ("us", "us-kubeconfig", "value")):
        mount = mounts[f"/etc/holmes-clusters/{name}"]
        assert mount["readOnly"] is True
        source = at(volumes[str(mount["name"])], "secret")
        assert (source["secretName"], source["items"]) == (secret, [{"key": key, "path": "kubeconfig"}])


def test_postgresql_means_rolling_updates_without_a_volume_and_with_a_budget(rendered: dict[str, Manifests]) -> None:
    made = rendered["PostgreSQL"]
    assert at(made.one("Deployment"), "spec")["replicas"] == 3
    assert at(made.one("Deployment"), "spec", "strategy")["type"] == "RollingUpdate"
    assert "PersistentVolumeClaim" not in made.kinds()
    assert at(made.variables()["HOLMES_DATABASE_URL"], "valueFrom", "secretKeyRef") == {
        "name": "holmes-database", "key": "address",
    }  # fmt: skip
    assert at(made.one("PodDisruptionBudget"), "spec")["maxUnavailable"] == 1
    ports = [at(rule, "ports", 0)["port"] for rule in items(at(made.one("NetworkPolicy"), "spec"), "egress")]
    assert ports == [53, 443, 6432, 9090]


def test_autoscaling_leaves_the_number_of_replicas_to_the_autoscaler(rendered: dict[str, Manifests]) -> None:
    made = rendered["autoscaling"]
    assert "replicas" not in at(made.one("Deployment"), "spec")
    scaler = at(made.one("HorizontalPodAutoscaler"), "spec")
    assert (scaler["minReplicas"], scaler["maxReplicas"]) == (2, 6)
    targets = [at(metric, "resource", "target")["averageUtilization"] for metric in items(scaler, "metrics")]
    assert targets == [60, 80]
    assert "PodDisruptionBudget" in made.kinds()


def test_namespaced_rights_are_roles_only_without_what_was_switched_off(rendered: dict[str, Manifests]) -> None:
    made = rendered["namespaced rights"]
    assert not made.kinds() & {"ClusterRole", "ClusterRoleBinding"}
    assert [at(role, "metadata").get("namespace") for role in made.all("Role")] == ["shop", "billing", None]
    assert made.variables()["SCOPED_NAMESPACES"]["value"] == "shop,billing"
    assert "argoproj.io" not in json.dumps(made.all("Role"))
    assert "nodes" not in json.dumps(made.all("Role"))


def test_a_foreign_account_gets_no_rights_and_nothing_is_made_that_is_there(rendered: dict[str, Manifests]) -> None:
    made = rendered["a foreign account"]
    assert made.kinds() == {"ConfigMap", "Service", "Deployment", "Pod"}
    assert made.pod()["serviceAccountName"] == "reader"
    assert at(made.variables()["HOLMES_API_KEY"], "valueFrom", "secretKeyRef")["name"] == "holmes-keys"
    claims = [volume["persistentVolumeClaim"] for volume in items(made.pod(), "volumes") if volume["name"] == "data"]
    assert claims == [{"claimName": "holmes-data"}]


def test_monitoring_reads_metrics_with_the_key_and_sends_alerts_with_the_other(rendered: dict[str, Manifests]) -> None:
    made = rendered["monitoring"]
    endpoint = at(made.one("ServiceMonitor"), "spec", "endpoints", 0)
    assert at(endpoint, "authorization", "credentials") == {"name": "holmes", "key": "api-key"}
    receiver = at(made.one("AlertmanagerConfig"), "spec", "receivers", 0, "webhookConfigs", 0)
    assert receiver["url"] == "http://holmes.ops.svc:5050/api/alerts/alertmanager"
    assert at(receiver, "httpConfig", "authorization", "credentials")["key"] == "webhook-key"
    for kind in CUSTOM_KINDS:
        schema = json.loads((SCHEMAS / f"{kind.lower()}.json").read_text(encoding="utf-8"))
        jsonschema.validate(made.one(kind), schema)


def test_scheduling_values_reach_the_pod_unchanged(rendered: dict[str, Manifests]) -> None:
    made, values = rendered["scheduling"], VALUE_SETS["scheduling"]
    pod = made.pod()
    for key in ("nodeSelector", "tolerations", "affinity", "priorityClassName"):
        assert pod[key] == values[key], key
    template = at(made.one("Deployment"), "spec", "template", "metadata")
    assert at(template, "annotations")["example.com/team"] == "platform"
    assert at(template, "labels")["example.com/team"] == "platform"


def test_hardening_can_be_adapted_without_losing_the_rest(rendered: dict[str, Manifests]) -> None:
    made = rendered["hardened"]
    assert made.container()["image"] == "registry.example.com/tools/holmes:1.2.3"
    assert at(made.pod(), "securityContext") == {
        "runAsNonRoot": True,
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert list(items(made.container(), "envFrom")) == [{"secretRef": {"name": "models"}}]
    assert "/etc/ssl/company" in [mount["mountPath"] for mount in items(made.container(), "volumeMounts")]
    groups = json.dumps(made.one("ClusterRole")["rules"])
    assert "example.com" in groups
    assert "istio" not in groups
    ingress = at(made.one("NetworkPolicy"), "spec", "ingress", 0)
    assert len(list(items(ingress, "from"))) == 2


def test_a_changed_configuration_restarts_the_pod_and_an_unchanged_one_does_not(chart_helm: Helm) -> None:
    def checksum(values: JsonObject) -> object:
        deployment = chart_helm.template(values).one("Deployment")
        return at(deployment, "spec", "template", "metadata", "annotations")["checksum/config"]

    assert checksum({}) == checksum({"replicas": 0}) != checksum({"config": {"max_steps": 7}})


@pytest.mark.cluster
def test_the_api_server_accepts_every_object_of_every_value_set(
    cluster: Cluster, chart_helm: Helm, tmp_path: Path
) -> None:
    namespace = create_namespace(cluster, "dry")
    documents: list[JsonObject] = []
    for number, values in enumerate(VALUE_SETS.values()):
        chosen = {**values, "rbac": {"namespaces": [namespace, "default"]}} if "rbac" in values else values
        made = chart_helm.template(chosen, release=f"holmes-{number}", namespace=namespace)
        documents += [_placed(each, namespace) for each in made.documents if each["kind"] not in CUSTOM_KINDS]
    file = tmp_path / "all.yaml"
    file.write_text(yaml.safe_dump_all(documents))
    try:
        checked = cluster.run("create", "--dry-run=server", "--validate=strict", f"--filename={file}")
        assert checked.count("(server dry run)") == len(documents) > 70
    finally:
        cluster.run("delete", "namespace", namespace, "--wait=false")


def _placed(document: JsonObject, namespace: str) -> JsonObject:
    """The object with the namespace that helm would install it into."""
    return {**document, "metadata": {"namespace": namespace, **at(document, "metadata")}}


SECTIONS: Final = sorted(
    name
    for name, value in yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8")).items()
    if isinstance(value, dict) and name != "service"
)


@pytest.mark.parametrize("name", SECTIONS)
def test_a_section_that_is_null_is_a_section_with_nothing_in_it(chart_helm: Helm, name: str) -> None:
    everything = {**DATABASE, **{each: {"enabled": True} for each in ("networkPolicy", "serviceMonitor")}}
    for values in ({}, everything):
        made = chart_helm.template({**values, name: None})
        assert "Deployment" in made.kinds()
        assert "<no value>" not in made.text
    chart_helm.run("install", "--dry-run=client", "holmes", str(CHART), values={name: None})


def test_a_network_policy_without_addresses_or_ports_does_not_open_all_of_them(chart_helm: Helm) -> None:
    cases: tuple[JsonObject, ...] = ({"httpsPorts": None}, {"httpsCidrs": None}, {"httpsPorts": []}, {"httpsCidrs": []})
    for left_out in cases:
        made = chart_helm.template({"networkPolicy": {"enabled": True, **left_out}})
        (only,) = items(at(made.one("NetworkPolicy"), "spec"), "egress")
        assert only == {"ports": [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]}
