"""The tools of `tracing/traces` against Jaeger, real or recorded, and a server that stands in for Tempo."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import pytest

from holmes.tokens import TokenCounter
from holmes.toolsets.registry import ToolsetContext
from holmes.toolsets.traces.toolset import TracesFactory
from holmes.values.environment import Environment
from holmes.values.errors import ConfigError, ToolError
from tests.services.exchanges import served
from tests.support.command_line import Home
from tests.toolsets.traces.calling import call
from tests.toolsets.traces.jaeger_shop import JAEGER, RECORDED, shop_in_jaeger
from tests.toolsets.traces.shop import FAST, RANGE, SLOW, trace_id
from tests.toolsets.traces.tempo_server import tempo

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from holmes.values.json_types import JsonValue

FAILED: Final = trace_id(FAST + SLOW)
EVERYTHING: Final = FAST + SLOW + 1


@pytest.fixture(scope="module", params=["jaeger", "tempo"])
def config(request: pytest.FixtureRequest) -> Iterator[dict[str, JsonValue]]:
    if request.param == "tempo":
        with tempo() as (url, _):
            yield {"type": "tempo", "url": url}
    else:
        with served(RECORDED, real=shop_in_jaeger, server=JAEGER) as url:
            yield {"type": "jaeger", "url": url}


def search(config: dict[str, JsonValue], **arguments: JsonValue) -> list[str]:
    return call("search_traces", config, **RANGE, **arguments).data.splitlines()


async def test_a_check_tells_product_and_version(config: dict[str, JsonValue]) -> None:
    context = ToolsetContext(environment=Environment.of({}), config=config)
    version = {"jaeger": JAEGER, "tempo": "Tempo 2.7.1"}[str(config["type"])]
    assert (await TracesFactory().check(context)).startswith(f"traces: {version}, ")


def test_the_newest_traces_of_a_service_with_the_number_of_all(config: dict[str, JsonValue]) -> None:
    head, *rows = search(config, service="checkout", limit=20)
    assert head == f"{EVERYTHING} traces, newest first, 2026-01-05T09:55Z to 2026-01-05T10:15Z"
    assert rows[0] == (
        f"{FAILED} 2026-01-05T10:02Z 4.97 s frontend: GET /checkout, match 964 ms, 6 spans, 2 failed, 5 services"
    )
    assert [row.split()[0] for row in rows] == [trace_id(number) for number in reversed(range(EVERYTHING))]


def test_a_limit_says_that_more_can_match(config: dict[str, JsonValue]) -> None:
    head, *rows = search(config, service="checkout", limit=2)
    assert head.startswith("2 traces, more can match, newest first")
    assert len(rows) == 2


def test_the_slowest_are_chosen_from_more_than_are_shown(config: dict[str, JsonValue]) -> None:
    head, *rows = search(config, service="frontend", operation="GET /checkout", order="slowest", limit=SLOW)
    assert head.startswith(f"{SLOW} of {EVERYTHING} traces, slowest first")
    assert {row.split()[0] for row in rows} == {trace_id(FAST + number) for number in range(SLOW)}
    assert all("match 1.3 s, 17 spans" in row for row in rows)


@pytest.mark.parametrize(
    ("arguments", "count"),
    [
        ({"service": "db", "min_duration": "90ms"}, SLOW),
        ({"service": "payment", "only_errors": True}, 1),
        ({"service": "checkout", "tags": "http.response.status_code=502"}, 1),
        ({"service": "checkout", "tags": 'http.response.status_code="200"', "min_duration": "1s"}, SLOW),
        ({"service": "db", "tags": 'db.query.text="SELECT price FROM items WHERE id = ?"'}, EVERYTHING),
    ],
)
def test_traces_are_chosen_by_duration_errors_and_attributes(
    config: dict[str, JsonValue], arguments: dict[str, JsonValue], count: int
) -> None:
    assert len(search(config, **arguments, limit=20)) == count + 1


def test_a_search_without_matches_says_what_exists(config: dict[str, JsonValue]) -> None:
    assert call("search_traces", config, service="db", min_duration="1h", **RANGE).status == "no_data"
    with pytest.raises(ToolError, match="traces has no service 'chekout'; did you mean 'checkout'"):
        search(config, service="chekout")
    with pytest.raises(ToolError, match="has no operation 'charg'; did you mean 'charge'"):
        search(config, service="payment", operation="charg")


def test_a_slow_trace_shows_the_repeated_query_on_its_critical_path(config: dict[str, JsonValue]) -> None:
    head, busy, *tree = call("read_trace", config, trace_id=trace_id(FAST)).data.splitlines()
    assert head == (
        f"trace {trace_id(FAST)}: 1.3 s (the last span ends after 5.29 s) at 2026-01-05T10:01:30Z, 17 spans of 5 "
        "services, 0 failed"
    )
    assert busy == (
        "busy on the critical path (*): db: SELECT items 1.18 s (90 %), checkout: POST /pay 64 ms (5 %), "
        "payment: charge 40 ms (3 %), frontend: GET /checkout 10 ms (1 %)"
    )
    assert tree == [
        "* frontend: GET /checkout 1.3 s",
        "  * frontend: POST /pay 1.29 s",
        "    * checkout: POST /pay 1.28 s, 59 ms without children",
        "      * 12 x db: SELECT items total 1.18 s (98 ms to 98 ms each)",
        "      * payment: charge 40 ms",
        "      - mail: send receipt 4 s",
    ]


def test_a_failed_trace_shows_where_and_why(config: dict[str, JsonValue]) -> None:
    lines = call("read_trace", config, trace_id=FAILED.upper()).data.splitlines()
    assert "6 spans of 5 services, 2 failed" in lines[0]
    (charge,) = [line for line in lines if "payment: charge" in line and line.startswith("      ")]
    assert charge == (
        "      * payment: charge 900 ms, failed: card declined by bank at charge (pay.go:17), k8s.pod.name=payment-1"
    )
    assert sum("failed: payment failed" in line for line in lines) == 1


def test_the_complete_trace_has_every_span_with_its_attributes(config: dict[str, JsonValue]) -> None:
    text = call("read_trace", config, trace_id=trace_id(FAST), complete=True).data
    queries = [line for line in text.splitlines() if "db: SELECT items (server)" in line]
    assert len(queries) == 12
    assert all("98 ms on the critical path" in line for line in queries)
    assert "db.query.text=SELECT price FROM items WHERE id = ?" in queries[0]
    assert "k8s.pod.name=db-2" in queries[0]


def test_slow_against_fast_traces_names_the_span_that_differs(config: dict[str, JsonValue]) -> None:
    text = call("compare_traces", config, service="frontend", operation="GET /checkout", **RANGE).data
    head, first, where, *rest = text.splitlines()
    assert head == (
        "frontend: GET /checkout, of 13 traces that match: 3 slow traces take 1.3 s on average, 6 fast traces 123 ms"
    )
    assert first == (
        "- db: SELECT items: own time on the critical path 21 ms → 1.18 s, +1.16 s (98 % of the difference); "
        "each 21 ms → 98 ms; spans per trace 1 → 12"
    )
    assert where == "  k8s.pod.name=db-2 in 3 of 3 slow and 0 of 6 fast"
    assert "This is a correlation: it shows where the time is, not why." in rest


def test_a_limit_for_slow_traces_finds_those_that_fail(config: dict[str, JsonValue]) -> None:
    arguments: dict[str, JsonValue] = {"service": "payment", "slower_than": "500ms", **RANGE}
    text = call("compare_traces", config, **arguments).data
    assert "1 slow traces take 900 ms" in text
    assert "payment: charge: own time on the critical path 40 ms → 900 ms" in text
    assert "fails in 0 of 8 → 1 of 1 traces" in text


def test_too_few_traces_are_not_compared(config: dict[str, JsonValue]) -> None:
    with pytest.raises(ToolError, match="13 traces match, 0 of them slow: too few to compare"):
        call("compare_traces", config, service="payment", slower_than="1m", **RANGE)


def test_a_trace_that_does_not_exist(config: dict[str, JsonValue]) -> None:
    with pytest.raises(ToolError, match="trace 'abcdef' not found; check the id, or it is older"):
        call("read_trace", config, trace_id="abcdef")
    with pytest.raises(ToolError, match=r"trace_id '\.\./services' is not valid"):
        call("read_trace", config, trace_id="../services")


def test_short_texts_stay_below_600_tokens(config: dict[str, JsonValue]) -> None:
    counter = TokenCounter()
    for number in (0, FAST, FAST + SLOW):
        assert counter.count_text(call("read_trace", config, trace_id=trace_id(number)).data) < 600


def test_jaeger_requires_a_service(config: dict[str, JsonValue]) -> None:
    if config["type"] == "tempo":
        assert len(search(config, limit=20)) == EVERYTHING + 1
        return
    with pytest.raises(ToolError, match="service is required by Jaeger; available services: checkout, db, frontend"):
        search(config)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"limit": 1_000}, "limit 1000 is not valid; expected a number from 1 to 50"),
        ({"min_duration": "fast"}, "min_duration 'fast' is not a valid duration; expected for example 500ms or 2s"),
        ({"tags": "status code"}, "tags 'status code' is not valid; expected for example http.status_code=500"),
        ({"since": "60d", "until": "1h"}, "the range at most 31 days"),
        ({"since": "yesterday"}, "since 'yesterday' is neither a duration"),
    ],
)
def test_arguments_that_are_not_valid(arguments: dict[str, JsonValue], message: str) -> None:
    with pytest.raises(ToolError, match=message):
        call("search_traces", {"type": "tempo", "url": "http://127.0.0.1:9"}, **arguments)


def test_tempo_before_the_second_form_of_its_api() -> None:
    with tempo(has_second_api=False) as (url, _):
        text = call("read_trace", {"type": "tempo", "url": url}, trace_id=trace_id(0)).data
    assert "6 spans of 5 services" in text


def test_the_configuration_of_holmesgpt_enables_the_toolset(tmp_path: Path) -> None:
    with tempo() as (url, _):
        own = {"api_url": url, "api_key": "not-a-secret", "grafana_datasource_uid": "tempo-1", "external_url": "x"}
        direct = {"url": url, "headers": {"X-Scope-OrgID": "shop"}}
        for number, keys in enumerate((own, direct)):
            config = json.dumps({"toolsets": {"grafana/tempo": {"enabled": True, "config": keys}}})
            home = Home.make(tmp_path / f"home-{number}", config=config)
            (line,) = [each for each in home.run("toolset", "list").stdout.splitlines() if each.startswith("tracing")]
            assert " enabled   3 tools, tempo: Tempo 2.7.1, " in line


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"url": "http://traces:3200"}, "instance 'traces': type: Field required"),
        ({"type": "zipkin", "url": "http://x"}, "instance 'traces': type: Input should be 'jaeger' or 'tempo'"),
        ({"instances": {"a": {"type": "tempo", "url": "traces:3200"}}}, "instance 'a': url: 'traces:3200' does not"),
        ({"instances": {"a": {"type": "tempo", "urls": "http://x"}}}, "instance 'a': url: Field required"),
        ({"instances": {"a": "http://x"}}, "instance 'a'"),
        ({"instances": []}, "instances must map at least one name"),
    ],
)
async def test_a_configuration_that_is_not_valid(config: dict[str, JsonValue], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        await TracesFactory().check(ToolsetContext(environment=Environment.of({}), config=config))
