"""Logs in eight styles with one line, or one stack trace, that tells the fault."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

from benchmarks.preview_corpora.cases import Made
from benchmarks.preview_corpora.words import (
    APPS,
    NAMESPACES,
    USERS,
    random_address,
    random_hex,
    random_suffix,
)

Line = tuple[str, str]  # level, message


def _usual_lines(chance: random.Random) -> list[Callable[[], Line]]:
    """What a healthy service writes, with much that sounds worse than it is."""
    pick, number = chance.choice, chance.randrange
    return [
        lambda: (
            "info",
            f"handled request id={random_hex(chance, 32)} path=/api/v1/{pick(APPS)}/{number(10**5)} in {number(400)}ms",
        ),
        lambda: ("info", f"user {pick(USERS)} logged in from {random_address(chance)} errors=0"),
        lambda: ("debug", f"cache hit for key {pick(APPS)}:{number(10**6)} ttl={number(3600)}s"),
        lambda: (
            "info",
            f"published {number(50)} messages to topic {pick(APPS)}.events partition {number(24)}, 0 failed",
        ),
        lambda: ("info", f"reconciled {pick(NAMESPACES)}/{pick(APPS)} generation {number(40)} with no errors"),
        lambda: ("info", f"error budget remaining for {pick(APPS)}: 99.{number(99):02d}%"),
        lambda: ("debug", f"GC pause {number(40)}.{number(10)}ms, heap {number(900)}Mi of 2048Mi"),
        lambda: (
            "info",
            (
                f"wrote batch {random_hex(chance, 8)}-{random_hex(chance, 4)}-{random_hex(chance, 12)} "
                f"rows={number(5000)} retries=0"
            ),
        ),
        lambda: (
            "info",
            (
                f"synced {number(300)} endpoints of service {pick(APPS)} "
                f"from {random_address(chance)}:{number(30000, 60000)}"
            ),
        ),
        lambda: ("info", f"job {pick(APPS)}-{number(10**6)} finished with exit code 0 after {number(90)}s"),
        lambda: ("info", f"failover candidates checked: {number(5)} healthy, timeout=30s"),
        lambda: ("debug", f"token refreshed for client {random_hex(chance, 16)}, expires in {number(3600)}s"),
        lambda: ("info", f"rate limiter allowed {number(900)} requests, rejected=0, for tenant {pick(USERS)}"),
    ]


def _nagging_lines(chance: random.Random) -> list[Callable[[], Line]]:
    """Warnings and errors that are there every day."""
    number = chance.randrange
    return [
        lambda: ("warn", f"retrying upstream call attempt={number(1, 4)} after timeout"),
        lambda: ("warn", f"slow query took {number(900, 4000)}ms: SELECT * FROM {chance.choice(APPS)}_items"),  # noqa: S608  a log line
        lambda: (
            "error",
            f"failed to export {number(500)} spans: collector otel.monitoring:4317 unavailable, will retry",
        ),
        lambda: ("warn", f"deprecated field spec.{chance.choice(USERS)} used by client {random_address(chance)}"),
        lambda: ("warn", f"connection to {random_address(chance)} closed by peer, reconnecting"),
        lambda: ("error", f"request {random_hex(chance, 16)} cancelled by client"),
    ]


def _telling_lines(chance: random.Random) -> list[Line]:
    """Faults as programs tell them; the last ones only in a normal line."""
    app, host = chance.choice(APPS), random_address(chance)
    return [
        ("error", f'pq: password authentication failed for user "{app}_rw"'),
        ("error", f"dial tcp: lookup {app}-db.data.svc.cluster.local: no such host"),
        ("error", f"write /var/lib/{app}/segment-{chance.randrange(999)}.log: no space left on device"),
        ("error", f'tls: failed to verify certificate for "{app}.internal": x509: certificate has expired'),
        ("fatal", f"required environment variable {app.upper().replace('-', '_')}_DSN is not set"),
        ("error", f"open /etc/{app}/config.yaml: permission denied"),
        ("error", f"java.lang.OutOfMemoryError: Java heap space in worker pool {app}"),
        ("warn", f"lost leader election lease kube-system/{app}-lock to {host}"),
        ("error", f"ERROR: deadlock detected on relation {app}_balances"),
        ("error", f"FATAL: remaining connection slots are reserved, pool for {app} exhausted"),
        ("error", f"MISCONF Redis is configured to save snapshots but cannot persist, instance {host}"),
        ("error", f"schema version 41 of {app} is older than required version 42"),
        ("warn", f"replication of {app} is lagging behind primary by {chance.randrange(4000, 9000)} s"),
        ("error", f"S3 PutObject to bucket {app}-archive: AccessDenied: signature does not match"),
        ("fatal", f"panic: runtime error: invalid memory address or nil pointer dereference in {app}.Apply"),
        ("error", f"quota exceeded for project {app}: CPUS_ALL_REGIONS limit 64"),
        ("info", f"storage backend of {app} switched to read-only mode"),
        ("info", f"feature flag {app}-v2 turned off by operator"),
        ("info", f"received SIGTERM, draining {app}"),
        ("info", f"config reloaded: max_connections of {app} lowered from 200 to 2"),
    ]


def make_logs(chance: random.Random) -> Made:
    total = chance.choice((2_000, 5_000, 12_000, 40_000))
    style = chance.choice(("plain", "bracket", "json", "logfmt", "klog", "prefixed", "access", "java"))
    usual = chance.sample(_usual_lines(chance), chance.randrange(6, 13))
    nagging = chance.sample(_nagging_lines(chance), chance.randrange(1, 5))
    at = chance.randrange(total // 8, total * 7 // 8)
    second = 36_000 + chance.randrange(9_000)
    lines: list[str] = []
    fault = _log_fault(chance, style)
    quiet = chance.choice((0.01, 0.05, 0.15))
    name, planted, facts = fault
    for number in range(total):
        if number == at:
            lines.extend(_styled(chance, style, second + number // 12, level, message) for level, message in planted)
        maker = chance.choice(nagging) if chance.random() < quiet else chance.choice(usual)
        level, message = maker()
        lines.append(_styled(chance, style, second + number // 12, level, message))
    return f"{style}: {name}", "\n".join(lines) + "\n", facts


def _log_fault(chance: random.Random, style: str) -> tuple[str, list[Line], tuple[str, ...]]:
    kind = chance.randrange(10)
    if style == "access":
        status = chance.choice(("502", "503", "504", "500"))
        planted = [(status, "") for _ in range(chance.choice((1, 3, 25)))]
        return f"status {status}", planted, (f'" {status} ',)
    if kind == 0:
        trace = [
            ("error", "unhandled exception while processing order"),
            ("raw", "java.lang.IllegalStateException: no result"),
        ]
        trace += [
            ("raw", f"\tat com.shop.Orders.step{step}(Orders.java:{chance.randrange(900)})") for step in range(14)
        ]
        reason = f"Caused by: java.net.ConnectException: {chance.choice(APPS)}-db:5432 refused the connection"
        trace += [("raw", reason), ("raw", "\tat java.base/sun.nio.ch.Net.connect(Net.java:589)")]
        return "deep cause of a stack trace", trace, (reason,)
    if kind == 1:
        error = chance.choice(("KeyError", "ValueError", "botocore.exceptions.NoCredentialsError"))
        last = f"{error}: {chance.choice(APPS)}"
        trace = [("error", "task failed"), ("raw", "Traceback (most recent call last):")]
        trace += [("raw", f'  File "/app/worker.py", line {chance.randrange(900)}, in run{step}') for step in range(9)]
        return "exception at the end of a traceback", [*trace, ("raw", last)], (last,)
    level, message = chance.choice(_telling_lines(chance))
    text = json.dumps(message)[1:-1] if style == "json" else message
    return message, [(level, message)], (text,)


def _styled(chance: random.Random, style: str, second: int, level: str, message: str) -> str:  # noqa: PLR0911  one per style
    clock = f"{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}"
    stamp = f"2026-11-20T{clock}.{chance.randrange(1000):03d}Z"
    if level == "raw":
        return f"[pod/api-0/app] {message}" if style == "prefixed" else message
    match style:
        case "plain":
            return f"{stamp} {level.upper():5} {message}"
        case "bracket":
            return f"2026-11-20 {clock},{chance.randrange(1000):03d} [{level}] worker-{chance.randrange(8)}: {message}"
        case "json":
            fields = {
                "ts": stamp,
                "level": level,
                "msg": message,
                "trace_id": random_hex(chance, 32),
                "caller": "server.go:88",
            }
            return json.dumps(fields, separators=(",", ":"))
        case "logfmt":
            return f'ts={stamp} level={level} component=api msg="{message}" span={random_hex(chance, 16)}'
        case "klog":
            letter = {"debug": "I", "info": "I", "warn": "W", "error": "E", "fatal": "F"}[level]
            micros, line = chance.randrange(10**6), chance.randrange(60, 90)
            return f"{letter}1120 {clock}.{micros:06d}       1 controller.go:{line}] {message}"
        case "prefixed":
            return f"[pod/{chance.choice(APPS)}-{random_suffix(chance, 2)}/app] {stamp} {level.upper()} {message}"
        case "java":
            return f"{stamp[:-1]} {level.upper():5} 1 --- [exec-{chance.randrange(20)}] c.s.Service : {message}"
        case _:
            status = level if level.isdigit() else chance.choices(("200", "304", "404", "201"), (80, 8, 3, 9))[0]
            path = f"/api/v1/{chance.choice(APPS)}/{chance.randrange(10**5)}"
            return (
                f'{random_address(chance)} - - [20/Nov/2026:{clock} +0000] "GET {path} HTTP/1.1" {status} '
                f'{chance.randrange(9000)} "-" "Mozilla/5.0" 0.{chance.randrange(1000):03d}'
            )
