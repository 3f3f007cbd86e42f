"""Which monitoring sources an investigation of one cluster uses."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from holmes.app.cluster import of_cluster
from holmes.app.toolsets import open_toolsets
from holmes.settings.load import load_settings
from holmes.toolsets.mcp.session import open_sessions
from holmes.toolsets.registry import ToolsetContext
from holmes.toolsets.source_clusters import config_for_cluster, serves
from holmes.values.environment import Environment
from holmes.values.errors import ConfigError
from holmes.values.json_types import JsonValue
from tests.services.fixtures import RunMonitor

EU: JsonValue = {"url": "http://eu:9090", "cluster": "eu"}
US: JsonValue = {"url": "http://us:9090", "cluster": "us"}
ALL: JsonValue = {"url": "http://all:9090"}
RECORDED: JsonValue = {"url": "http://old:9090", "cluster": "recording"}


def about(cluster: str | None, *, is_recorded: bool = False) -> ToolsetContext:
    return ToolsetContext(
        environment=Environment.of({}), cluster=cluster, clusters=("eu", "us"), is_recorded=is_recorded
    )


@pytest.mark.parametrize(
    ("context", "kept"),
    [
        (about("eu"), ["eu", "all"]),
        (about("us"), ["us", "all"]),
        (about(""), ["all"]),
        (about(None), ["eu", "us", "all"]),
        (about("", is_recorded=True), ["old"]),
    ],
)
def test_the_sources_of_a_cluster_are_its_own_and_those_of_all(context: ToolsetContext, kept: list[str]) -> None:
    found = config_for_cluster({"instances": {"eu": EU, "us": US, "all": ALL, "old": RECORDED}}, context)
    assert found is not None
    instances = found["instances"]
    assert isinstance(instances, dict)
    assert list(instances) == kept


def test_a_cluster_without_a_source_has_no_toolset() -> None:
    assert config_for_cluster({"instances": {"eu": EU}}, about("us")) is None
    assert config_for_cluster({"url": "http://eu:9090", "cluster": "eu"}, about("us")) is None
    assert config_for_cluster({"prometheus_url": "http://all:9090"}, about("us")) is not None


def test_a_recording_reads_no_live_source_but_keeps_the_toolsets_that_read_the_cluster() -> None:
    recorded = about("", is_recorded=True)
    assert config_for_cluster({"prometheus_url": "http://all:9090"}, recorded) is None
    assert config_for_cluster({"default_tail_lines": 10}, recorded) is not None
    assert config_for_cluster({"url": "http://old:9090", "cluster": "recording"}, recorded) is not None
    assert config_for_cluster({"url": "http://old:9090", "cluster": "recording"}, about("eu")) is None
    assert [serves(own, recorded) for own in (None, "eu", "recording")] == [True, False, True]


def test_a_source_of_an_unknown_cluster_is_an_error() -> None:
    with pytest.raises(ConfigError, match="unknown cluster 'mars'; configured clusters: eu, us"):
        config_for_cluster({"instances": {"a": {"url": "http://a", "cluster": "mars"}}}, about("eu"))


async def test_a_real_source_is_read_only_for_its_cluster(prometheus: RunMonitor, tmp_path: Path) -> None:
    """The configuration is that of docs/clusters.md, where only `eu` has a Prometheus that answers."""
    page = (Path(__file__).parents[2] / "docs" / "clusters.md").read_text()
    (written,) = re.findall(r"^# file: sources.yaml\n(.*?)^```$", page, flags=re.MULTILINE | re.DOTALL)
    with prometheus({}) as monitor:
        text = written.replace("http://prometheus.eu.example.com:9090", monitor.url)
        file = tmp_path / "sources.yaml"
        file.write_text(text.replace("http://prometheus.us.example.com:9090", "http://127.0.0.1:1"))
        settings = load_settings({"HOME": str(tmp_path)}, file)
        async with open_sessions(tmp_path) as sessions:
            found = {}
            for cluster in ("eu", "us"):
                opened = await open_toolsets(of_cluster(settings, cluster), sessions, asks_llm=False)
                found[cluster] = next(each for each in opened.readiness.statuses if each.name == "prometheus/metrics")
    assert (found["eu"].state, found["us"].state) == ("enabled", "failed")
    assert found["eu"].detail.startswith("prometheus-eu: Prometheus ")
    assert "prometheus-us" in str(found["us"].reason)
