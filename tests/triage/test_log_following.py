"""Trouble in a log leads to its origin: the server behind a client, or the client that overloads the server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from holmes.triage.log_evidence import LogCause, cause_in_logs
from holmes.triage.question import parse_question
from tests.triage.corpus.loading import scan_of

CLIENT = {"env": {"STORE": "http://store:8080"}}
QUIET = {"from": 7200, "to": 1810, "every": 30, "line": "INFO served {n}"}


def repeated(line: str, since: int = 1800, every: int = 30) -> dict[str, Any]:
    return {"from": since, "to": 0, "every": every, "line": line}


FAILS = repeated("ERROR request {n} failed: http://store:8080/v1 answered 503")


def cause(name: str, servers: Mapping[str, Any], logs: Mapping[str, Any], **more: Any) -> LogCause | None:  # noqa: ANN401
    scan = scan_of({"servers": servers, "logs": logs, "objects": [], **more})
    subject = scan.state.get("Deployment", "shop", name)
    assert subject is not None
    return cause_in_logs(scan.state, parse_question(f"why is {name} failing?"), (subject,))


def culprit(name: str, servers: Mapping[str, Any], logs: Mapping[str, Any], **more: Any) -> str:  # noqa: ANN401
    found = cause(name, servers, logs, **more)
    return str(found.culprit) if found is not None and not found.doubtful else "none"


SHARED = {"web": CLIENT, "bulk-import": CLIENT, "store": {}}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('WARN load shed, inflight {"web": 3, "bulk-import": 411}', "Deployment shop/bulk-import"),
        ("ERROR too many connections, most are held by bulk_import", "Deployment shop/bulk-import"),
        ('WARN load shed, inflight {"web": 200, "bulk-import": 211}', "Deployment shop/store"),
        ("ERROR cannot open segment 12: input/output error", "Deployment shop/store"),
    ],
)
def test_a_server_names_the_client_that_overloads_it(line: str, expected: str) -> None:
    logs = {"web": [QUIET, FAILS], "store": [QUIET, repeated(line)]}
    assert culprit("web", SHARED, logs) == expected


def test_the_process_that_holds_a_lock_leads_to_its_client() -> None:
    opened = {"at": 1815, "line": "[4711] LOG connection authorized: user=bulk_import"}
    holder = "[9{n}] DETAIL Process holding the lock: 4711"
    waits = repeated(f"[9{{n}}] LOG process 9{{n}} still waiting for ShareLock after 1000 ms\n{holder}")
    logs = {"web": [QUIET, FAILS], "store": [QUIET, opened, waits]}
    assert culprit("web", SHARED, logs) == "Deployment shop/bulk-import"


def test_a_server_that_rejects_one_client_only_is_not_at_fault() -> None:
    denied = repeated("ERROR request {n} failed: http://store:8080/v1 answered 401 Unauthorized")
    rejects = repeated("WARN rejected: token is expired, caller web")
    served = {**QUIET, "to": 0}
    assert culprit("web", SHARED, {"web": [QUIET, denied], "store": [served, rejects]}) == "Deployment shop/web"
    assert culprit("web", SHARED, {"web": [QUIET, denied], "store": [QUIET, rejects]}) == "Deployment shop/store"


def test_a_client_that_was_started_just_before_is_the_reason_of_a_used_up_pool() -> None:
    full = repeated("FATAL sorry, too many clients already")
    logs = {"web": [QUIET, FAILS], "store": [QUIET, full]}
    servers = {**SHARED, "bulk-import": {**CLIENT, "age": 1900}}
    assert culprit("web", servers, logs) == "Deployment shop/bulk-import"
    assert culprit("web", SHARED, logs) == "Deployment shop/store"


def test_no_side_is_blamed_if_a_server_does_not_answer_and_works_as_usual() -> None:
    late = repeated("ERROR request {n} failed: http://store:8080/v1: context deadline exceeded")
    found = cause("web", SHARED, {"web": [QUIET, late], "store": [{**QUIET, "to": 0}]})
    assert found is not None
    assert found.doubtful


def test_trouble_of_another_time_is_not_the_origin() -> None:
    earlier = {"from": 86_400, "to": 50_000, "every": 600, "line": "ERROR cannot open segment {n}: input/output error"}
    logs = {"web": [QUIET, FAILS], "store": [earlier, {**QUIET, "from": 49_000, "to": 0}]}
    found = cause("web", SHARED, logs)
    assert found is not None
    assert all("segment" not in each.group.record for each in found.troubles)


RESET = repeated("ERROR push {n} failed: read: connection reset by peer")


def test_lines_without_a_name_are_about_the_only_server_that_a_workload_uses() -> None:
    found = cause("web", SHARED, {"web": [QUIET, RESET], "store": [{**QUIET, "to": 0}]})
    assert found is not None
    assert found.doubtful
    elsewhere = repeated("ERROR push {n} to api.partner.example:443 failed: read: connection reset by peer")
    outside = cause("web", SHARED, {"web": [QUIET, elsewhere], "store": [{**QUIET, "to": 0}]})
    assert outside is not None
    assert outside.outside == ("api.partner.example",)
    assert outside.doubtful


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("INFO settings applied: number format 1.0 -> 1,0", "Deployment shop/store"),
        ("INFO nightly report sent", "none"),
    ],
)
def test_a_server_whose_log_tells_of_a_change_explains_answers_that_its_client_cannot_read(
    line: str, expected: str
) -> None:
    unread = repeated("ERROR item {n} skipped: Client 'store': cannot deserialize value \"1,0\"")
    logs = {"web": [QUIET, unread], "store": [{**QUIET, "to": 0}, {"at": 1830, "line": line}]}
    assert culprit("web", SHARED, logs) == expected


def test_a_server_whose_clock_jumped_is_at_fault_and_not_the_client_whose_token_it_made() -> None:
    denied = repeated("ERROR GET /me 401: token from http://store:8080 was issued 90s in the future")
    served = {**QUIET, "to": 0}
    jumped = {"at": 1815, "line": "WARN system time moved forward by 90012 ms"}
    assert culprit("web", SHARED, {"web": [QUIET, denied], "store": [served, jumped]}) == "Deployment shop/store"
    assert culprit("web", SHARED, {"web": [QUIET, denied], "store": [served]}) == "Deployment shop/web"


def test_a_client_whose_log_tells_of_a_change_is_the_reason_of_a_full_server() -> None:
    full = repeated("ERROR SQLSTATE[HY000] [1040] Too many connections")
    workers = {"at": 1840, "line": "INFO settings reloaded: workers 8 -> 140"}
    logs = {"web": [QUIET, full], "bulk-import": [{**QUIET, "to": 0}, workers], "store": [{**QUIET, "to": 0}]}
    assert culprit("web", SHARED, logs) == "Deployment shop/bulk-import"
    assert culprit("web", SHARED, {**logs, "bulk-import": [{**QUIET, "to": 0}]}) == "Deployment shop/store"


DNS = [
    {
        "kind": "Service",
        "metadata": {"name": "kube-dns", "namespace": "kube-system", "age": 9000},
        "spec": {"selector": {"k": "dns"}, "clusterIP": "10.96.0.10", "ports": [{"port": 53, "protocol": "UDP"}]},
    },
    {
        "kind": "Pod",
        "metadata": {"name": "dns-1", "namespace": "kube-system", "age": 9000, "labels": {"k": "dns"}},
        "spec": {"containers": [{"name": "dns"}]},
        "status": {"phase": "Running", "containerStatuses": [{"name": "dns", "ready": True, "state": {"running": {}}}]},
    },
]


@pytest.mark.parametrize(
    ("host", "expected"), [("api.partner.example", "Pod kube-system/dns-1"), ("other.example", "Deployment shop/web")]
)
def test_a_host_that_cannot_be_resolved_leads_to_the_name_server_whose_log_names_it(host: str, expected: str) -> None:
    lost = repeated("ERROR call {n} failed: getaddrinfo EAI_AGAIN api.partner.example")
    logs = {
        "web": [QUIET, lost],
        "kube-system/dns-1/dns": [QUIET, repeated(f"[ERROR] 2 {host}. A: read udp 10.0.0.1->10.9.9.9:53: i/o timeout")],
    }
    assert culprit("web", {"web": {}}, logs, objects=DNS) == expected


SLOW = repeated("WARN batch of 500 done in 32198 ms")
FAST = {**QUIET, "line": "INFO batch of 500 done in 90 ms"}


def test_the_only_server_that_was_started_just_before_explains_slow_work() -> None:
    client = {"web": {"env": {"STORE": "http://store:8080", "BUS": "http://bus:9000"}}}
    logs = {"web": [FAST, SLOW]}
    assert culprit("web", {**client, "store": {"age": 1900}, "bus": {}}, logs) == "Deployment shop/store"
    assert culprit("web", {**client, "store": {"age": 1900}, "bus": {"age": 1900}}, logs) == "Deployment shop/web"
    assert culprit("web", {**client, "store": {}, "bus": {}}, logs) == "Deployment shop/web"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("upgrade 12: rename seats.zone_id to seats.block_id", "Job shop/migrate-7"),
        ("upgrade 12: rename gates.door_nr to gates.door", "Deployment shop/store"),
        ("read 40 rows of seats.zone_id", "Deployment shop/store"),
    ],
)
def test_a_job_that_changed_what_the_lines_speak_of_is_the_cause(line: str, expected: str) -> None:
    unknown = repeated("ERROR column seats.zone_id does not exist at character 15")
    objects = [
        {"kind": "Job", "metadata": {"name": "migrate-7", "age": 1900}, "status": {"succeeded": 1}},
        {
            "kind": "Pod",
            "metadata": {"name": "migrate-7-x", "age": 1900, "owner": "Job/migrate-7"},
            "spec": {"containers": [{"name": "migrate"}]},
            "status": {
                "phase": "Succeeded",
                "containerStatuses": [{"name": "migrate", "state": {"terminated": {"exitCode": 0}}}],
            },
        },
    ]
    logs = {
        "web": [QUIET, FAILS],
        "store": [QUIET, unknown],
        "shop/migrate-7-x/migrate": [{"at": 1880, "line": line}],
    }
    assert culprit("web", SHARED, logs, objects=objects) == expected


def test_a_queue_is_full_because_the_client_that_reads_it_stopped_with_an_error() -> None:
    full = repeated("WARN queue 'raw' is full: max-length 2000")
    stopped = [{"from": 7200, "to": 5000, "every": 30, "line": "INFO read {n} rows"}]
    dead = {"at": 4990, "line": "ERROR consumer thread died: ValueError: bad row"}
    idle = {"from": 4900, "to": 0, "every": 60, "line": "INFO GET /healthz 200"}
    logs = {"web": [QUIET, FAILS], "store": [QUIET, full]}
    assert culprit("web", SHARED, {**logs, "bulk-import": [*stopped, dead, idle]}) == "Deployment shop/bulk-import"
    works = {"from": 4980, "to": 0, "every": 30, "line": "INFO read {n} rows"}
    assert culprit("web", SHARED, {**logs, "bulk-import": [*stopped, dead, works]}) == "Deployment shop/store"


def test_the_only_client_whose_settings_contain_a_path_in_the_lines_fills_a_store() -> None:
    full = repeated("ERROR put denied: quota exceeded, prefix nightly_dump/ holds 291 GiB")
    logs = {"web": [QUIET, FAILS], "store": [QUIET, full]}
    dump = {"env": {"STORE": "http://store:8080", "TARGET": "s3://files/nightly_dump"}}
    assert culprit("web", {**SHARED, "bulk-import": dump}, logs) == "Deployment shop/bulk-import"
    assert culprit("web", SHARED, logs) == "Deployment shop/store"


def test_a_line_of_generic_words_is_not_a_cause() -> None:
    found = cause(
        "web", {"web": {}}, {"web": [QUIET, repeated("[05:00] app.ERROR: unexpected error, reference ER-5{n}1")]}
    )
    assert found is not None
    assert found.doubtful
    named = repeated("[05:00] app.ERROR: unexpected error, table seats is locked")
    assert culprit("web", {"web": {}}, {"web": [QUIET, named]}) == "Deployment shop/web"
