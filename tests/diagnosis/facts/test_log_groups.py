"""What counts as trouble in a log: its kind, its share, its beginning, and whether it is over."""

from __future__ import annotations

from holmes.diagnosis.facts.line_groups import LogGroup
from holmes.diagnosis.facts.log_groups import story_of
from holmes.diagnosis.facts.log_numbers import risen_numbers
from holmes.kubernetes.fields import written
from tests.diagnosis.row_cases import NOW


def lines(text: str, *, begin: int, end: int = 0, every: int = 30) -> list[tuple[int, str]]:
    """The text from `begin` to `end` seconds before now. `{n}` counts."""
    return [(ago, text.replace("{n}", str(number))) for number, ago in enumerate(range(begin, end, -every))]


def log_of(*parts: list[tuple[int, str]]) -> str:
    found = sorted((each for part in parts for each in part), key=lambda each: -each[0])
    return "\n".join(f"{written(NOW - ago)} {line}" for ago, text in found for line in text.split("\n"))


def only_group(*parts: list[tuple[int, str]]) -> LogGroup:
    (group,) = story_of(log_of(*parts)).groups
    return group


def test_lines_that_begin_late_and_continue_are_sudden() -> None:
    group = only_group(
        lines("INFO order {n} placed", begin=7200, end=900),
        lines("ERROR order {n}: dial tcp 10.0.0.1:5432: connect: connection refused", begin=900),
    )

    assert (group.kind, group.count, group.sudden, group.over) == ("connection refused", 30, True, False)
    assert group.first == NOW - 900
    assert group.share == 1.0


def test_noise_of_the_healthy_time_is_not_sudden() -> None:
    group = only_group(
        lines("INFO order {n} placed", begin=7200),
        lines("ERROR metrics push {n} failed", begin=7190, every=60),
    )

    assert not group.sudden
    assert not group.over


def test_a_stray_line_long_before_does_not_hide_the_beginning() -> None:
    line = "ERROR order {n}: connection refused"
    group = only_group(
        lines("INFO order {n} placed", begin=7200, end=900), lines(line, begin=7000, end=6990), lines(line, begin=900)
    )

    assert group.sudden
    assert group.first == NOW - 900


def test_lines_that_ended_while_the_log_continues_are_over() -> None:
    group = only_group(
        lines("INFO order {n} placed", begin=7200, end=3600),
        lines("ERROR order {n}: connection refused", begin=3600, end=3000),
        lines("INFO order {n} placed", begin=3000),
    )

    assert group.over


def test_the_last_cause_of_a_stack_decides_and_its_frames_are_not_lines() -> None:
    stack = (
        "ERROR could not create invoice {n}\njava.lang.RuntimeException: failed\n\tat shop.Client.send(Client.java:8)\n"
        "Caused by: java.net.UnknownHostException: ledger\n\t... 9 more"
    )
    group = only_group(lines("INFO invoice {n} created", begin=7200, end=900), lines(stack, begin=900))

    assert group.kind == "unknown host"
    assert group.share == 1.0
    assert group.record.endswith("Caused by: java.net.UnknownHostException: ledger")


def test_handled_lines_and_words_in_routes_are_not_errors() -> None:
    log = log_of(
        lines("INFO GET /static/error-pages/404.css 200 2ms", begin=3600),
        lines("INFO batch done: 500 rows, 0 errors, 0 failed", begin=3600),
        lines("ERROR row {n} has an unknown colour, skipped", begin=3600),
        lines('user {n} search "missing" returned 0 results', begin=3600),
        lines("POST /returns 400 rejected: order number must have 10 digits", begin=3600, every=900),
    )

    assert [(group.weight, group.sudden) for group in story_of(log).groups] == [("warning", False)]


def test_a_mistake_of_a_client_is_marked() -> None:
    group = only_group(
        lines("INFO GET /item/{n} 200", begin=3600),
        lines("ERROR invalid API key in request from http://kiosk:8080/item", begin=600),
    )

    assert group.of_client


def test_the_same_route_with_another_status_is_another_group() -> None:
    group = only_group(lines("GET /slots 200 14ms", begin=3600), lines("GET /slots 503 2ms", begin=610))

    assert group.count == 21
    assert group.weight == "status"


def test_words_without_a_level_count_in_place_of_the_usual_lines() -> None:
    stuck = "in flight, not acked: {n}"
    group = only_group(lines("printed label {n}, acked", begin=7200, end=900), lines(stuck, begin=880, every=60))

    assert (group.weight, group.sudden, group.instead) == ("warning", True, "printed label 209, acked")
    assert group.is_evidence(NOW)
    assert story_of(log_of(lines("printed label {n}", begin=7200), lines(stuck, begin=880, every=60))).groups == ()


def test_a_route_that_is_only_refused_since_a_moment_is_a_fault() -> None:
    flipped = only_group(lines("POST /hook 204", begin=7200, end=900), lines("POST /hook 403", begin=870))

    assert (flipped.weight, flipped.sudden) == ("status", True)
    assert story_of(log_of(lines("POST /hook 204", begin=7200), lines("POST /hook 403", begin=870))).groups == ()


def test_an_idle_program_is_not_stuck() -> None:
    idle = story_of(log_of(lines("sent batch {n}", begin=7200, end=900), lines("queue empty, idle", begin=880)))
    counts = story_of(log_of(lines("sent {n}", begin=7200, end=900), lines("sent=4 errors=0 failed: 0", begin=880)))

    assert idle.groups == ()
    assert counts.groups == ()


def test_records_with_the_same_first_line_and_different_causes_are_different() -> None:
    heading = "fail: Ledger.Api[0]\n      entry {n} "
    story = story_of(
        log_of(
            lines(heading + "rejected: amount must be positive", begin=7200, every=900),
            lines("info: Ledger.Api[0]\n      entry {n} booked", begin=7190, end=600),
            lines(heading + "not booked\n      SqlException: deadlock detected", begin=580),
        )
    )
    usual, fault = sorted(story.groups, key=lambda group: group.first)

    assert (usual.kind, usual.is_evidence(NOW)) == (None, False)
    assert (fault.kind, fault.is_evidence(NOW)) == ("lock", True)


def test_the_details_of_a_database_belong_to_their_record() -> None:
    waits = (
        "[889] app LOG:  process 889 still waiting for ShareLock\n[889] app DETAIL:  Process holding the lock: 7990."
    )
    group = only_group(lines("LOG:  checkpoint complete", begin=7200), lines(waits, begin=600))

    assert group.record.endswith("ShareLock … DETAIL:  Process holding the lock: 7990.")
    assert group.share > 0.4


def test_a_state_is_evidence_until_its_end_is_reported() -> None:
    usual, alarm = lines("[info] accepted connection {n}", begin=7200), "[warning] memory resource limit alarm "
    (standing,) = story_of(log_of(usual, [(5000, f"{alarm}set")])).groups
    ended = story_of(log_of(usual, [(5000, f"{alarm}set"), (4000, f"{alarm}cleared")])).groups

    assert standing.persists
    assert standing.is_evidence(NOW)
    assert not any(group.is_evidence(NOW) for group in ended)


def test_attempts_that_succeed_in_the_end_are_no_trouble() -> None:
    failed = "WARN push {n}: connection reset by peer, retry in 5s"
    story = story_of(
        log_of(
            lines("INFO sent {n}", begin=7200),
            lines(failed, begin=1800, every=60),
            lines("INFO push {n} succeeded on retry 1", begin=1795, every=60),
        )
    )

    assert story.groups == ()
    assert len(story_of(log_of(lines("INFO sent {n}", begin=7200), lines(failed, begin=1800))).groups) == 1


def test_a_surge_of_a_usual_error_is_sudden_and_a_busy_hour_is_not() -> None:
    error, usual = "ERROR departure control refused {n}", "INFO boarding pass printed {n}"
    surge = only_group(
        lines(usual, begin=21600), lines(error, begin=21000, end=1300, every=1500), lines(error, begin=1200, every=8)
    )
    busy = only_group(
        lines(usual, begin=21600, end=1200, every=120),
        lines(usual, begin=1200, every=6),
        lines(error, begin=21000, end=1200, every=1200),
        lines(error, begin=1200, every=60),
    )

    assert (surge.sudden, surge.first) == (True, NOW - 1200)
    assert not busy.sudden


def test_what_a_program_always_reported_is_noise_unless_it_started_a_short_time_ago() -> None:
    log = log_of(lines("INFO started", begin=1800, end=1799), lines("ERROR queue {n} closed", begin=1790))
    old = log_of(lines("ERROR queue {n} closed", begin=86000, every=600))
    half = log_of(lines("INFO ok {n}", begin=1790), lines("ERROR {n}: connection refused", begin=1795))

    def evidence(text: str, started: float) -> bool:
        return any(group.is_evidence(NOW) for group in story_of(text, started).groups)

    assert evidence(log, NOW - 1800)
    assert not evidence(old, NOW - 86000)
    assert evidence(half, NOW - 1796)
    assert not evidence(half, NOW - 86000)


def test_telemetry_is_beside_the_work_of_a_program() -> None:
    story = story_of(
        log_of(
            lines("INFO uploaded {n}", begin=7200),
            lines("ERROR otel exporter: batch {n}: deadline exceeded", begin=1800, every=120),
            lines("ERROR upload {n}: no space left on device", begin=1790, every=120),
        )
    )
    first, second = sorted(story.groups, key=lambda group: group.rank)

    assert (first.kind, first.weight) == ("disk full", "kind")
    assert second.weight == "warning"


def test_json_and_other_levels_are_read() -> None:
    records = (
        '{"@l":"Error","@m":"order {n} failed"}',
        '{"level":50,"msg":"order {n} failed"}',
        '{"log":{"level":"error"},"message":"order {n} failed"}',
        '{"t":1,"s":"E","msg":"order {n} failed"}',
        "shop.CRITICAL: order {n} failed",
        "E, [2026-11-22 #1] order {n} failed",
        "[2026-11-22 04:00:00,1: ERROR/Worker-1] order {n} failed",
    )

    for record in records:
        assert only_group(lines("ok {n}", begin=3600), lines(record, begin=600)).weight == "error"


def test_a_line_before_the_first_error_tells_of_a_change() -> None:
    story = story_of(
        log_of(
            lines("INFO code accepted {n}", begin=3600, end=600),
            [(601, "INFO configuration reloaded from /etc/rules.yaml (version 31)")],
            lines("ERROR cannot apply rule {n}", begin=599),
        )
    )

    assert story.line_before(story.groups[0]) == "INFO configuration reloaded from /etc/rules.yaml (version 31)"


def test_a_warning_before_the_first_error_is_told_if_nothing_changed() -> None:
    story = story_of(
        log_of(
            lines("INFO stored {n}", begin=3600, end=600),
            [(700, "WARN volume /cache inodes_used=100%")],
            lines("ERROR write {n} failed: No space left on device", begin=599),
        )
    )

    assert story.line_before(story.groups[-1]) == "WARN volume /cache inodes_used=100%"


def test_a_change_an_hour_before_the_first_error_is_not_quoted() -> None:
    story = story_of(
        log_of(
            lines("INFO code accepted {n}", begin=7200, end=600),
            [(4201, "INFO configuration reloaded from /etc/rules.yaml (version 31)")],
            lines("ERROR cannot apply rule {n}", begin=599),
        )
    )

    assert story.line_before(story.groups[0]) == ""


def risen(*parts: list[tuple[int, str]]) -> list[str]:
    return [group.detail for group in risen_numbers(story_of(log_of(*parts)))]


def test_response_times_that_rise_and_stay_high_are_found_across_levels() -> None:
    found = risen(
        lines("INFO GET /slots 200 3{n}ms", begin=3600, end=1800), lines("WARN GET /slots 200 9{n}34ms", begin=1800)
    )

    assert len(found) == 1
    assert found[0].startswith("The time rose from 3")


def test_a_slow_request_now_and_then_is_normal() -> None:
    assert risen(lines("GET /slots 200 31ms", begin=7200), lines("GET /slots 200 9200ms", begin=7195, every=1800)) == []


def test_memory_that_only_grows_is_found_and_a_saw_tooth_is_not() -> None:
    growing = [(7200 - 60 * number, f"stats heap_used_mb={200 + 6 * number}") for number in range(100)]
    falling = [(7200 - 60 * number, f"stats heap_used_mb={200 + 60 * (number % 10)}") for number in range(100)]
    counter = [(7200 - 60 * number, f"stats requests_total={200 + 60 * number}") for number in range(100)]

    assert risen(growing) == ["`heap_used_mb` rose from 200 to 794"]
    assert risen(falling) == []
    assert risen(counter) == []


def test_times_with_and_without_units_are_compared() -> None:
    seconds = risen(
        lines('"GET /t/{n} HTTP/1.1" 200 rt=0.031', begin=3600, end=900),
        lines('"GET /t/{n} HTTP/1.1" 200 rt=11.172', begin=900),
    )
    replaced = risen(lines("served snapshot took=6ms", begin=3600, end=900), lines("served live took=11.1s", begin=890))
    failed = risen(
        lines("GET /t/{n} 200 31ms", begin=3600, end=900), lines("GET /t/{n} 504 30001ms", begin=890, every=30)
    )

    assert seconds == ["`rt` rose from 31ms to 11172ms"]
    assert replaced == ["`took` rose from 6ms to 11100ms"]
    assert failed == []


def test_the_pauses_between_attempts_and_ages_are_not_response_times() -> None:
    assert risen([(3600 - 30 * n, f"WARN no link, retry in {n * 100}ms") for n in range(1, 100)]) == []
    assert risen([(3600 - 30 * n, f"INFO alive, uptime={n * 30}s") for n in range(1, 100)]) == []


def test_logs_without_times_and_odd_logs_are_read() -> None:
    assert story_of("").groups == ()
    assert story_of("\n\n").groups == ()
    assert story_of("ERROR connection refused\n" * 4).groups[0].first == 0.0
    assert story_of("2026-11-22T04:00:00Z\n2026-11-22T04:00:00Z  at x\n").groups == ()
