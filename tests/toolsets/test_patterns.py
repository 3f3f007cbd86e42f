"""A pattern of the model never takes much memory or time before it is matched, in no tool that takes one."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holmes.toolsets.kubernetes_logs.request import line_filter, log_request
from holmes.toolsets.patterns import bounded_pattern
from holmes.toolsets.stored_results.lines import SearchQuery, search_lines
from holmes.values.errors import ToolError

_HOSTILE = "(((((a{1000}){1000}){1000}){1000}){1000})"
_MEMORY_LIMIT_KB = 1_000_000
# Runs in a process of its own: a pattern that gets through must not take the memory of the machine.
_COMPILE_ALL = """
import sys
from holmes.values.errors import ToolError
from holmes.toolsets.patterns import bounded_pattern
import regex
for pattern in sys.stdin.read().split("\\0"):
    try:
        bounded_pattern(pattern, name="pattern", ignore_case=True)
        outcome = "compiled"
    except ToolError:
        outcome = "refused"
    print(outcome)
"""


def _compile_all(patterns: list[str]) -> list[str]:
    """The outcome of each; a pattern that would fill the memory ends the process."""
    done = subprocess.run(
        ["bash", "-c", f'ulimit -v {_MEMORY_LIMIT_KB}; exec "$@"', "bash", sys.executable, "-c", _COMPILE_ALL],
        input="\0".join(patterns),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    "pattern",
    [
        _HOSTILE,
        "a{100000}",
        "(a{1000}){1000}",
        "(?:a{1000,}){1000,}",
        "(?P<n>(?:a{200}|b){200})",
        "(" * 20 + "a" + ")+" * 20,
        "(" * 20 + "a" + "){1,2}" * 20,
        "(?:[[:alpha:](]{1000}){1000}",
        "[](a](?:[^](]{1000}){1000}",
        r"(?:\({1000}){1000}",
        "(?x) # [ \n (a{1000}){1000} # ]",
        "(?V1)[[a](?:b{1000}){1000}]",
        "(?#[)(a{1000}){1000}(?#])",
        "[[:nothing:](a{1000}){1000}]",
        "[(a{1000}){1000}",
        "(a{1000}){99999999999999999999999999999999}",
        "(" * 800 + "a" + ")*" * 800,
        "a" * 2001,
    ],
)
def test_a_pattern_that_would_fill_the_memory_is_refused(pattern: str) -> None:
    with pytest.raises(ToolError):
        bounded_pattern(pattern, name="pattern", ignore_case=True)


@pytest.mark.parametrize(
    "pattern",
    [
        "(?R)",
        "(?0)",
        "(a|(?1))+",
        "(a)(?-1)",
        "(?+1)(a)",
        "(?P<n>a|(?&n))",
        "(?P>n)(?P<n>a)",
        "(?P&n)(?P<n>a)",
        r"\\(?R)",
        "[(](?:x|(?R))",
    ],
)
def test_recursion_is_refused_in_one_line(pattern: str) -> None:
    with pytest.raises(ToolError, match="recursion") as caught:
        bounded_pattern(pattern, name="pattern")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "pattern", [r"\(?R\)", "[(?R)]", r"(a)\1", "(?P<n>a)(?P=n)", "(?:R)", "(?-i:R)", "(a)(?(1)b|c)"]
)
def test_what_only_looks_like_recursion_compiles(pattern: str) -> None:
    assert bounded_pattern(pattern, name="pattern").pattern == pattern


@pytest.mark.parametrize(
    "pattern",
    [
        r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?Z",
        "[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}",
        r"(?:\d{1,3}\.){3}\d{1,3}",
        "(?i)error|(?<!no )exception|panic: .{0,500}",
        r"^\[(?:WARN|ERROR)\] .+(?:timeout|refused)+$",
        "[[:space:]]+[](){}*]",
        r"x{,3}[^]]{2,}?\{1000000\}a{1 }",
        "(?:key=\\S+ ){20}",
    ],
)
def test_patterns_of_daily_work_compile(pattern: str) -> None:
    assert bounded_pattern(pattern, name="pattern", ignore_case=False).pattern == pattern


_PIECES = st.sampled_from(
    ["(", "(?:", "(?=", "(?|", ")", ")", "[", "[^", "[]", "]", "[[:alpha:]", "[:", "\\", "a", "|", "{9}", "{30}",
     "{3,}", "{2,5}", "{,4}", "+", "*", "?", "\\d", "\\p{L}", "{e<=2}", "(?1)", "(?i)", "(?x)", "#", "\n", "&&", "--"]
)  # fmt: skip


@settings(max_examples=3, deadline=None)
@given(st.lists(st.lists(_PIECES, max_size=60).map("".join), min_size=200, max_size=300))
def test_no_combination_of_syntax_gets_past_the_measure(patterns: list[str]) -> None:
    closed = [pattern + ")" * max(0, pattern.count("(") - pattern.count(")")) for pattern in patterns]
    outcomes = _compile_all(closed)
    assert len(outcomes) == len(closed)
    assert set(outcomes) <= {"compiled", "refused"}


@pytest.mark.parametrize("argument", ["include", "exclude"])
def test_both_filters_of_the_logs_refuse_a_hostile_pattern(argument: str) -> None:
    request = log_request({"name": "cart", argument: "(a{1000}){1000}"}, now=datetime.now(UTC))
    with pytest.raises(ToolError, match=rf"{argument} '\(a.*repeats too much: its unrolled form has more than 10,000"):
        line_filter(request)


def test_the_search_in_stored_results_refuses_a_hostile_pattern() -> None:
    query = SearchQuery(pattern="(a{1000}){1000}", ignore_case=False, context_lines=0, skip_matches=0, max_matches=1)
    with pytest.raises(ToolError, match=r"pattern '.*repeats too much"):
        search_lines(["a"], query)
