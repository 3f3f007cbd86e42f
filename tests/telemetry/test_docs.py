"""What docs/observability.md says: every figure is in its table, and promtool accepts its files."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from holmes.settings.server import TelemetrySettings
from holmes.telemetry.metrics import Metrics
from tests.services import programs
from tests.services.fixtures import needed_programs

DOCUMENT = (Path(__file__).parents[2] / "docs" / "observability.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"^```yaml\n# file: (\S+)\n(.*?)^```$", DOCUMENT, flags=re.MULTILINE | re.DOTALL))


def exposed_names() -> set[str]:
    """The names under which figures are exposed; histograms without their suffixes."""
    families = list(Metrics(models=[]).instruments.registry.collect())
    return {
        f"{family.name}_total" if family.type == "counter" else family.name
        for family in families
        if family.name.startswith("holmes_")
    }


def test_the_table_has_every_figure_and_no_other() -> None:
    rows = re.findall(r"^\| `(holmes_\w+)`(?: \*)? \| ", DOCUMENT, flags=re.MULTILINE)
    assert sorted(rows) == sorted(exposed_names())


def test_the_alerts_are_about_figures_that_there_are() -> None:
    rules = yaml.safe_load(FILES["holmes-rules.yaml"])["groups"][0]["rules"]
    named = {name for rule in rules for name in re.findall(r"holmes_\w+", rule["expr"])}
    assert len(rules) > 5
    assert named <= exposed_names()


@pytest.mark.parametrize(
    ("check", "file"),
    [(("check", "rules", "--lint=all", "--lint-fatal"), "holmes-rules.yaml"), (("check", "config"), "prometheus.yaml")],
)
def test_promtool_accepts_the_files(check: tuple[str, ...], file: str, tmp_path: Path) -> None:
    with needed_programs():
        promtool = programs.prometheus().with_name("promtool")
    secret = tmp_path / "key"
    secret.write_text("key")
    for name, text in FILES.items():
        own = text.replace("/etc/prometheus/secrets/holmes-api-key", str(secret))
        (tmp_path / name).write_text(own, encoding="utf-8")
    done = subprocess.run([promtool, *check, str(tmp_path / file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_variables_of_the_document_are_those_that_are_read() -> None:
    for variable in ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_SDK_DISABLED"):
        assert f"`{variable}" in DOCUMENT
    assert TelemetrySettings().traces_address() is None
    assert TelemetrySettings(otlp_endpoint="http://c:4318/").traces_address() == "http://c:4318/v1/traces"
