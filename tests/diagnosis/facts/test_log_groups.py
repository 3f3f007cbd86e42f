"""What counts as trouble in a log: its kind, its share, its beginning, and whether it is over."""

from __future__ import annotations

from holmes.diagnosis.facts.log_groups import LogGroup, story_of
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


def test_a_line_before_the_first_error_tells_of_a_change() -> None:
    story = story_of(
        log_of(
            lines("INFO code accepted {n}", begin=3600, end=600),
            [(601, "INFO configuration reloaded from /etc/rules.yaml (version 31)")],
            lines("ERROR cannot apply rule {n}", begin=599),
        )
    )

    assert story.line_before(story.groups[0]) == "INFO configuration reloaded from /etc/rules.yaml (version 31)"


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


def test_logs_without_times_and_odd_logs_are_read() -> None:
    assert story_of("").groups == ()
    assert story_of("\n\n").groups == ()
    assert story_of("ERROR connection refused\n" * 4).groups[0].first == 0.0
    assert story_of("2026-11-22T04:00:00Z\n2026-11-22T04:00:00Z  at x\n").groups == ()
