"""The keys of sources of logs, and the entries of HolmesGPT's configuration that become one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from holmes.observability.logs.source import LogAccess
from holmes.toolsets.catalogue import CatalogueFiles, load_catalogue, read_catalogue
from holmes.toolsets.instances import instances_of
from holmes.toolsets.kubernetes_logs.toolset import KubernetesLogsToolset
from holmes.toolsets.logs.config import KIND, configured_sources
from holmes.toolsets.logs.toolset import LogSourcesFactory, LogSourcesToolset
from holmes.toolsets.registry import ToolsetContext
from holmes.values.environment import Environment
from holmes.values.errors import ConfigError
from holmes.values.json_types import JsonValue

ENVIRONMENT = Environment.of({"LOKI_TOKEN": "t0ken"})


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"url": "http://a"}, "instance 'logs': type: Field required"),
        ({"type": "splunk", "url": "http://a"}, "type: Input should be 'loki', 'victorialogs', 'elasticsearch' or"),
        ({"type": "loki", "url": "http://a", "index": "x"}, "index and api_key are only for elasticsearch"),
        ({"type": "loki", "url": "http://a", "indx": "x"}, "valid keys: url, headers"),
        ({"type": "opensearch", "url": "http://a", "api_key": "k", "username": "u"}, "are mutually exclusive"),
        ({"type": "loki", "url": "a"}, "expected for example http://"),
        ({"type": "loki", "url": "http://a", "fields": {"pods": "x"}}, "fields.pods"),
    ],
)
def test_wrong_keys_are_one_line(config: dict[str, JsonValue], message: str) -> None:
    with pytest.raises(ConfigError, match=r"config of toolset 'logs/sources'") as raised:
        instances_of(config, KIND)
    assert message in str(raised.value)
    assert configured_sources(ToolsetContext(environment=ENVIRONMENT, others={"logs/sources": config})) == ()


def test_an_api_key_is_sent_as_elasticsearch_expects_it() -> None:
    (access,) = instances_of({"type": "elasticsearch", "url": "http://a", "api_key": "k", "index": "logs-*"}, KIND)
    assert access.headers == {"Authorization": "ApiKey k"}
    assert (access.index, access.product) == ("logs-*", "elasticsearch")
    assert "ApiKey" not in repr(access)


def test_tools_name_the_language_of_each_source() -> None:
    named: dict[str, JsonValue] = {
        "eu": {"type": "loki", "url": "http://a"},
        "us": {"type": "opensearch", "url": "http://b"},
    }
    query, _ = LogSourcesToolset(instances_of({"instances": named}, KIND)).tools
    by_name = {each.name: each.schema for each in query.parameters}
    assert by_name["query"].description == "eu: LogQL; us: Lucene syntax, or a query clause as JSON"
    assert by_name["instance"].enum == ("eu", "us")


async def test_the_toolset_is_refused_where_answers_must_stay_in_some_namespaces() -> None:
    environment = Environment.of({"HOLMES_SCOPED_NAMESPACES": "shop"})
    context = ToolsetContext(environment=environment, config={"type": "loki", "url": "http://127.0.0.1:9"})
    with pytest.raises(ConfigError, match="SCOPED_NAMESPACES"):
        await LogSourcesFactory().check(context)


def configured(toolsets: Mapping[str, object], tmp_path: Path) -> tuple[LogAccess, ...]:
    written = read_catalogue(CatalogueFiles(shipped=(), overrides=toolsets, overrides_source=str(tmp_path)))
    catalogue = load_catalogue(written, ENVIRONMENT)
    found = next((each for each in catalogue.python if each.factory.name == "logs/sources"), None)
    return instances_of(found.config, KIND) if found is not None else ()


def test_entries_of_holmesgpt_become_instances(tmp_path: Path) -> None:
    toolsets = {
        "grafana/loki": {
            "enabled": True,
            "config": {
                "url": "https://grafana.example.com/",
                "api_key": "{{ env.LOKI_TOKEN }}",
                "grafana_datasource_uid": "abc",
                "labels": {"pod": "podname", "namespace": "ns"},
            },
        },
        "opensearch/logs": {
            "enabled": True,
            "config": {
                "opensearch_url": "https://search.example.com",
                "index_pattern": "fluentd-*",
                "opensearch_auth_header": "ApiKey x",
                "labels": {"timestamp": "time"},
            },
        },
    }
    loki, search = configured(toolsets, tmp_path)
    assert (loki.name, loki.product, loki.bearer_token) == ("loki", "loki", "t0ken")
    assert loki.url == "https://grafana.example.com/api/datasources/proxy/uid/abc"
    assert (loki.fields.pod, loki.fields.namespace) == ("podname", "ns")
    assert (search.name, search.index, search.headers) == ("opensearch", "fluentd-*", {"Authorization": "ApiKey x"})
    assert search.fields.time == "time"


def test_a_disabled_entry_of_holmesgpt_adds_nothing(tmp_path: Path) -> None:
    off = {"elasticsearch/data": {"enabled": False, "config": {"api_url": "http://a"}}}
    assert configured(off, tmp_path) == ()


def test_the_instructions_name_deleted_pods_only_with_a_source() -> None:
    sources = instances_of({"type": "loki", "url": "http://a"}, KIND)
    with_source, without = KubernetesLogsToolset(ENVIRONMENT, sources=sources), KubernetesLogsToolset(ENVIRONMENT)
    assert "pods that no longer exist" in with_source.instructions
    assert "no longer exist" not in without.instructions


def test_labels_limit_a_source_and_are_shown_with_its_name() -> None:
    (access,) = instances_of({"type": "loki", "url": "http://a", "labels": {"cluster": "eu"}}, KIND)
    assert (access.labels, access.shown) == ({"cluster": "eu"}, "logs (only cluster=eu)")
    with pytest.raises(ConfigError, match=r"labels: 'a\.b' is not a valid label of Loki"):
        instances_of({"type": "loki", "url": "http://a", "labels": {"a.b": "eu"}}, KIND)
