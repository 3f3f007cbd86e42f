"""The line of a log that is quoted as the cause. No log can stall a scan."""

from __future__ import annotations

import pytest

from holmes.diagnosis.facts.logs import signatures_of
from holmes.kubernetes.cluster_state import ClusterState, LogKey, Reading
from holmes.values.findings import ObjectRef

GO_PANIC = """starting web 4.2.0
panic: runtime error: invalid memory address or nil pointer dereference
[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x4a1b2c]

goroutine 1 [running]:
main.main()
\t/src/main.go:14 +0x1d
exit status 2
"""
PYTHON = """INFO started
Traceback (most recent call last):
  File "/app/main.py", line 3, in <module>
    url = os.environ["PAYMENT_URL"]
          ~~~~~~~~~~^^^^^^^^^^^^^^^
KeyError: 'PAYMENT_URL'
"""
JAVA = """Exception in thread "main" java.lang.IllegalStateException: cannot start
\tat shop.checkout.Main.main(Main.java:14)
Caused by: java.net.UnknownHostException: payments
\t... 12 more
"""


@pytest.mark.parametrize(
    ("log", "kind", "quoted"),
    [
        (GO_PANIC, "crash", "panic: runtime error"),
        (PYTHON, "missing configuration", "KeyError: 'PAYMENT_URL'"),
        (JAVA, "unknown host", "Caused by: java.net.UnknownHostException: payments"),
        ("dial tcp 10.96.0.7:5432: connect: connection refused\n", "unreachable", "10.96.0.7:5432"),
        ("lookup payments on 10.96.0.10:53: no such host", "unknown host", "lookup payments"),
        ('FATAL: password authentication failed for user "shop"', "authentication", 'user "shop"'),
        ("touch: /var/log/x: Permission denied", "permission denied", "/var/log/x"),
        ("write /data/x: no space left on device", "disk full", "/data/x"),
        ("accept4: too many open files", "too many open files", "accept4"),
        ("x509: certificate signed by unknown authority", "certificate", "unknown authority"),
        ("java.lang.OutOfMemoryError: Java heap space", "out of memory", "Java heap space"),
        ("httpd: bind: Address already in use", "address in use", "httpd"),
        ("exec /app/server: exec format error", "wrong architecture", "/app/server"),
        ("sh: DATABASE_URL: parameter not set", "missing configuration", "DATABASE_URL"),
        ("Error: unknown flag: --prot", "bad argument", "--prot"),
        (
            'pods is forbidden: User "system:serviceaccount:shop:web" cannot list resource "pods"',
            "access forbidden",
            "cannot list",
        ),
        ("migration 7\nstopping after 3 of 9 steps\n\n", "last words", "stopping after 3 of 9 steps"),
    ],
)
def test_the_line_that_tells_why_is_quoted(log: str, kind: str, quoted: str) -> None:
    first = signatures_of(log)[0]
    assert first.kind == kind
    assert quoted in first.line


def test_the_line_that_ended_it_beats_what_was_repeated_before() -> None:
    log = "\n".join(["warning: metrics: connection refused"] * 30 + ["FATAL: DATABASE_URL is not set"])
    first, second = signatures_of(log)
    assert first.line == "FATAL: DATABASE_URL is not set"
    assert (second.kind, second.count) == ("unreachable", 30)


def test_what_says_more_beats_a_general_last_line() -> None:
    log = "error: cannot reach payments:8080: connection refused\nFATAL: giving up after 5 tries\n"
    assert signatures_of(log)[0].kind == "unreachable"


@pytest.mark.parametrize(
    ("error", "end"),
    [
        ('ERROR: column "currency" already exists', "migration 0042_currency failed, giving up"),
        ("pq: duplicate key value violates unique constraint", "Error: migration failed"),
        ("Error: plan limit reached", "exiting with code 3"),
        ("ERROR: relation is locked", "ERROR: rolling back transaction"),
        ("ERROR: index is not sorted", "worker stopped after 3 attempts."),
    ],
)
def test_the_first_error_comes_before_a_last_line_that_only_says_that_it_is_the_end(error: str, end: str) -> None:
    lines = [each.line for each in signatures_of(f"applying migration\n{error}\n{end}\n")]
    assert lines[0] == error
    assert signatures_of(f"{end}\n")[0].line == end


def test_a_last_line_that_says_why_stays_first_and_the_first_error_is_told_too() -> None:
    first, second = signatures_of("ERROR: step 2 was slow\nERROR: cart has no owner\n")
    assert (first.line, second.line) == ("ERROR: cart has no owner", "ERROR: step 2 was slow")


def test_an_address_that_did_not_answer_is_unreachable() -> None:
    assert signatures_of("ERROR GET http://cart:8080/healthz failed: timed out\n")[0].kind == "unreachable"


def test_the_times_that_the_kubelet_adds_are_not_quoted() -> None:
    key = LogKey(pod=ObjectRef(kind="Pod", namespace="shop", name="web-1"), container="web", previous=False)
    log = "2026-11-22T05:00:00.123456789Z panic: boom\n2026-11-22T05:00:01Z 2026-11-22T05:00:01Z exiting"

    state = ClusterState(Reading(now=0.0), (), logs={key: log})

    assert state.logs == {key: "panic: boom\n2026-11-22T05:00:01Z exiting"}
    assert state.timed_logs == {key: log}


def test_calm_lines_are_no_signature() -> None:
    log = 'level=info msg="retrying after error"\n[info] 0 errors\nready'
    assert [each.kind for each in signatures_of(log)] == ["last words"]


def test_a_log_without_lines_has_no_signature() -> None:
    assert signatures_of("") == ()
    assert signatures_of("\n \n\t\n") == ()


@pytest.mark.parametrize("piece", ["a", " ", "Error", "panic ", "0", "\t", "at ", "=", "invalid "])
def test_a_hostile_log_is_read(piece: str) -> None:
    assert len(signatures_of("\n".join([piece * 1_000] * 500))) <= 1


def test_a_quoted_line_is_bounded() -> None:
    assert len(signatures_of("panic: " + "x" * 50_000)[0].line) == 2_000
