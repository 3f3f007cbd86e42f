"""N4: the same call again answers "unchanged" or a diff, never more than the result, and only of what is in sight."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holmes.core.loop_run import RepeatedCalls
from holmes.core.tools_utils.output_changes import output_change
from holmes.tokens import TokenCounter
from holmes.values.messages import (
    AssistantMessage,
    Message,
    ResultId,
    StoredResult,
    SystemMessage,
    Text,
    ToolCall,
    ToolMessage,
    ToolStatus,
    user_text,
)
from holmes.values.tools import LINES_TOOL, result_label
from tests.support.conversations import png
from tests.support.counting_model import tool_call

pytestmark = pytest.mark.row("N4")

COUNTER = TokenCounter()
HEADER = "NAME                        READY   STATUS             RESTARTS        AGE\n"


def pods(*rows: str) -> str:
    return HEADER + "".join(f"{row}\n" for row in rows)


def pod(name: str, status: str = "Running", restarts: str = "0", age: str = "3d4h") -> str:
    return f"{name:<28}1/1     {status:<19}{restarts:<16}{age}"


PODS = pods(*(pod(f"checkout-7f9c-{number:05d}") for number in range(40)))


def stored(text: str) -> StoredResult:
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    return StoredResult(id=ResultId(digest), path=None, size_bytes=len(text), media_type="text/plain")


def result(call: ToolCall, text: str, status: ToolStatus = "success") -> ToolMessage:
    """A result as the spill leaves it: stored, whole, labelled."""
    where = (stored(text),)
    parts = (Text(text=text), Text(text=result_label(where)))
    return ToolMessage(call_id=call.id, tool_name=call.name, status=status, parts=parts, stored=where)


class Polling:
    """A conversation that calls the same tool again and again, as the loop does it."""

    def __init__(self) -> None:
        self.history: list[Message] = [SystemMessage(text="s"), user_text("why?")]
        self.calls = RepeatedCalls(COUNTER)

    async def poll(self, text: str, arguments: str = '{"kind": "pods"}', status: ToolStatus = "success") -> ToolMessage:
        call = tool_call(f"call-{len(self.history)}", arguments=arguments)
        return await self.join(call, result(call, text, status))

    async def join(self, call: ToolCall, message: ToolMessage) -> ToolMessage:
        answered = await self.calls.answer(call, message, self.history)
        assert (answered.call_id, answered.status, answered.stored) == (message.call_id, message.status, message.stored)
        self.history += [AssistantMessage(text="", tool_calls=(call,)), answered]
        self.calls.note(answered, call, self.calls.rounds + 1)
        return answered


async def test_an_unchanged_result_says_since_when_and_keeps_its_id_in_sight() -> None:
    polling = Polling()
    first = await polling.poll(PODS)
    assert first.text.startswith(PODS)
    again = await polling.poll(PODS)
    assert again.text == f"Unchanged since step 1 (41 lines).\n[result {stored(PODS).id}]"
    assert (await polling.poll(PODS)).text == again.text
    assert COUNTER.count_message(again) < COUNTER.count_message(first) / 10


async def test_the_order_and_spacing_of_arguments_do_not_matter_but_their_values_do() -> None:
    polling = Polling()
    await polling.poll(PODS, '{"kind": "pods", "namespace": "shop"}')
    assert (await polling.poll(PODS, '{"namespace":"shop","kind":"pods"}')).text.startswith("Unchanged since step 1 ")
    assert (await polling.poll(PODS, '{"namespace":"pay","kind":"pods"}')).text.startswith(PODS)


async def test_a_changed_result_is_a_diff_against_the_result_in_sight() -> None:
    polling = Polling()
    await polling.poll(PODS)
    changed = PODS.replace(pod("checkout-7f9c-00007"), pod("checkout-7f9c-00007", status="CrashLoopBackOff"))
    answer = await polling.poll(changed)
    assert answer.text.startswith("Changed since step 1 (1 of 41 lines):\n@@ line 7 @@\n checkout-7f9c-00005")
    assert f"\n-{pod('checkout-7f9c-00007')}\n+{pod('checkout-7f9c-00007', 'CrashLoopBackOff')}\n" in answer.text
    assert answer.text.endswith(f"[result {stored(changed).id}]")
    assert (await polling.poll(changed)).text.startswith("Unchanged since step 2 (41 lines).")
    assert (await polling.poll(PODS)).text.startswith("Unchanged since step 1 (41 lines).")


async def test_a_result_that_changed_much_is_shown_whole_and_the_next_diff_starts_from_it() -> None:
    polling = Polling()
    await polling.poll(PODS)
    other = pods(*(pod(f"checkout-8a00-{number:05d}") for number in range(40)))
    assert (await polling.poll(other)).text.startswith(other)
    assert (await polling.poll(other)).text.startswith("Unchanged since step 2 ")


async def test_a_diff_of_more_than_a_third_is_not_worth_reading() -> None:
    polling = Polling()
    await polling.poll(PODS)
    changed = PODS
    for number in range(9):
        changed = changed.replace(f"7f9c-{number:05d}", f"8a00-{number:05d}")
    assert (await polling.poll(changed)).text.startswith(changed)


async def test_a_result_of_few_tokens_comes_as_it_is() -> None:
    polling = Polling()
    small = "The rollout of the deployment checkout is complete, and all of its replicas are available now.\n"
    for _ in range(2):
        assert (await polling.poll(small)).text.startswith(small)


async def test_ages_that_grew_are_no_change() -> None:
    polling = Polling()
    await polling.poll(pods(*(pod(f"checkout-{n}", restarts="3 (59s ago)", age="59m") for n in range(20))))
    older = pods(*(pod(f"checkout-{n}", restarts="3 (2m1s ago)", age="61m") for n in range(20)))
    answer = await polling.poll(older)
    assert answer.text.startswith("Unchanged since step 1 except ages (21 lines).")
    restarted = older.replace("3 (2m1s ago)", "4 (1s ago)", 1)
    answer = await polling.poll(restarted)
    assert "Changed since step 1 (1 of 21 lines; ages left out):" in answer.text
    assert answer.text.count("\n+") == 1
    assert "4 (1s ago)" in answer.text


async def test_an_age_that_went_down_is_a_change_because_the_object_is_a_new_one() -> None:
    polling = Polling()
    await polling.poll(PODS)
    recreated = PODS.replace(pod("checkout-7f9c-00003"), pod("checkout-7f9c-00003", age="12s"))
    answer = await polling.poll(recreated)
    assert answer.text.startswith("Changed since step 1 (1 of 41 lines")
    assert pod("checkout-7f9c-00003", age="12s") in answer.text


async def test_a_duration_that_is_no_age_is_a_change() -> None:
    manifest = "".join(f"    key-{number}: value\n" for number in range(60)) + "    timeout: 30s\n"
    polling = Polling()
    await polling.poll(manifest)
    assert "+    timeout: 45s" in (await polling.poll(manifest.replace("30s", "45s"))).text


async def test_heartbeat_times_of_nodes_are_no_change_but_other_times_are() -> None:
    node = "".join(f"  label-{number}: x\n" for number in range(60))
    polling = Polling()
    await polling.poll(f"{node}  - lastHeartbeatTime: '2026-11-22T01:00:00Z'\n".replace("'", '"'))
    later = f'{node}  - lastHeartbeatTime: "2026-11-22T01:05:00Z"\n'
    assert (await polling.poll(later)).text.startswith("Unchanged since step 1 except heartbeat times")
    await polling.poll(f"{node}  startedAt: 2026-11-22T01:00:00Z\n", "{}")
    answer = await polling.poll(f"{node}  startedAt: 2026-11-22T01:05:00Z\n", "{}")
    assert answer.text.startswith("Changed since step 3")


async def test_events_that_happened_once_more_are_shown_and_those_that_only_aged_are_not() -> None:
    header = "LAST SEEN            TYPE      REASON    OBJECT            MESSAGE\n"
    rows = [
        f"{age:<21}Warning   BackOff   pod/checkout-{n:<5}Back-off\n" for n, age in enumerate(["5m (x3 over 9m)"] * 20)
    ]
    later = [row.replace("5m (x3 over 9m) ", "6m (x3 over 10m)") for row in rows]
    polling = Polling()
    await polling.poll(header + "".join(rows))
    assert (await polling.poll(header + "".join(later))).text.startswith("Unchanged since step 1 except ages")
    later[4] = later[4].replace("6m (x3 over 10m)", "2s (x4 over 10m)")
    assert "(x4 over 10m)" in (await polling.poll(header + "".join(later))).text


async def test_what_the_model_no_longer_sees_is_sent_again() -> None:
    polling = Polling()
    first = await polling.poll(PODS)
    polling.history[polling.history.index(first)] = replace(first, parts=(Text(text="[cleared]"),), masked=True)
    assert (await polling.poll(PODS)).text.startswith(PODS)
    polling.history[2:] = []
    assert (await polling.poll(PODS)).text.startswith(PODS)


async def test_a_diff_that_the_model_no_longer_sees_is_not_referred_to() -> None:
    polling = Polling()
    await polling.poll(PODS)
    changed = PODS.replace("00007", "77777")
    diff = await polling.poll(changed)
    polling.history.remove(diff)
    assert (await polling.poll(changed)).text.startswith("Changed since step 1 (")


async def test_errors_small_results_and_pictures_come_as_they_are() -> None:
    polling = Polling()
    for _ in range(2):
        assert (await polling.poll("Error: forbidden\n" * 100, status="error")).text.startswith("Error: forbidden")
        assert (await polling.poll("checkout   Running\n", "{}")).text.startswith("checkout")
    for number, expected in ((1, None), (2, "Unchanged since step 5 (1 line)."), (3, None)):
        call = tool_call(f"picture-{number}", "look")
        plain, picture = result(call, "a picture"), png(800, 600, padding=number // 3)
        where = replace(stored(repr(picture)), media_type="image/png")
        parts = (plain.parts[0], picture, plain.parts[1])
        message = replace(plain, parts=parts, stored=(*plain.stored, where))
        answered = await polling.join(call, message)
        assert answered.text.startswith(expected) if expected else answered == message


async def test_two_pointers_to_the_same_stored_result() -> None:
    polling = Polling()
    answer = await polling.poll("nothing yet")
    for number in range(2):
        call = tool_call(f"big-{number}")
        pointer = replace(
            result(call, PODS), parts=(Text(text=f"Too large: {number}. " + "preview " * 200),), spilled=True
        )
        answer = await polling.join(call, pointer)
    assert answer.text.startswith(f"Unchanged since step 2: same as result {stored(PODS).id}.")
    assert answer.spilled


async def test_what_was_read_from_a_stored_result_names_that_result() -> None:
    polling = Polling()
    call = tool_call("a", LINES_TOOL, '{"result_id": "a1b2c3d4e5f6", "first": 1}')
    message = ToolMessage(call_id=call.id, tool_name=call.name, status="success", parts=(Text(text=PODS),))
    await polling.join(call, message)
    assert (await polling.join(call, message)).text == (
        "Unchanged since step 1 (41 lines).\nThe text is a part of result a1b2c3d4e5f6."
    )


async def test_a_full_disk_does_not_take_the_id_of_the_result_that_stands() -> None:
    polling = Polling()
    await polling.poll(PODS)
    call = tool_call("again", arguments='{"kind": "pods"}')
    message = ToolMessage(call_id=call.id, tool_name=call.name, status="success", parts=(Text(text=PODS),))
    again = await polling.join(call, message)
    assert again.text == f"Unchanged since step 1 (41 lines).\nThe full result is stored as {stored(PODS).id}."


@pytest.mark.parametrize("labelled", [True, False])
@pytest.mark.parametrize("second", ["same", "other"])
async def test_every_answer_names_an_id_of_what_is_stored(labelled: bool, second: str) -> None:
    polling = Polling()
    other = PODS.replace("00007", "77777")
    for text in (PODS, other if second == "other" else PODS, other, PODS, other):
        call = tool_call(f"call-{len(polling.history)}")
        whole = result(call, text)
        answer = await polling.join(call, whole if labelled else replace(whole, parts=whole.parts[:1]))
        if "since step" in answer.text:
            assert stored(text).id in answer.text
    assert any("since step" in message.text for message in polling.history if isinstance(message, ToolMessage))


async def test_without_a_store_only_what_is_wholly_in_sight_is_referred_to() -> None:
    polling = Polling()
    call = tool_call("a")
    message = ToolMessage(call_id=call.id, tool_name=call.name, status="success", parts=(Text(text=PODS),))
    await polling.join(call, message)
    assert (await polling.join(call, message)).text == "Unchanged since step 1 (41 lines)."
    older = replace(message, parts=(Text(text=PODS.replace("3d4h", "3d5h")),))
    assert await polling.join(call, older) == older


async def test_a_restart_goes_on_where_the_conversation_stands() -> None:
    polling = Polling()
    await polling.poll(PODS)
    changed = PODS.replace("00007", "77777")
    await polling.poll(changed)
    await polling.poll(PODS, '{"kind": "nodes"}')
    polling.calls = RepeatedCalls.of(polling.history, COUNTER)
    assert polling.calls.rounds == 3
    assert (await polling.poll(changed)).text.startswith("Unchanged since step 2 ")
    assert (await polling.poll(PODS)).text.startswith("Unchanged since step 1 ")
    assert (await polling.poll(PODS, '{"kind": "nodes"}')).text.startswith("Unchanged since step 3 ")


async def test_call_ids_that_a_provider_uses_again_are_told_apart() -> None:
    polling = Polling()
    call, other = tool_call("call_0"), tool_call("call_0", "kubectl_describe")
    await polling.join(call, result(call, PODS))
    await polling.join(other, result(other, PODS + "more\n"))
    assert (await polling.join(call, result(call, PODS))).text.startswith("Unchanged since step 1 ")
    polling.history[3:4] = []
    assert (await polling.join(call, result(call, PODS))).text.startswith(PODS)


def test_a_large_output_is_compared() -> None:
    rows = [f"row {number % 50}" for number in range(20_000)]
    changed = [*rows[:200], "odd one out", *rows[300:]]
    change = output_change("\n".join(rows), "\n".join(changed))
    assert change is not None
    assert change.changed_lines == 100
    shuffled = sorted(rows)
    assert output_change("\n".join(rows), "\n".join(shuffled)) is None
    assert output_change("a\n" * 600_000, "b\n" * 600_000) is None


LINES = st.sampled_from(
    [
        "",
        "a",
        "b",
        "NAME   AGE",
        "x      5m",
        "x      6m",
        "x      59s",
        "y      2d",
        "kind: Pod",
        "  - 3 (5m ago)",
        "é中",
    ]
)
OUTPUTS = st.lists(LINES, max_size=60).map("\n".join)


def patched(old: str, diff: str) -> list[str]:
    """What `old` becomes by the hunks of `diff`, context checked against nothing: only + and - lines count."""
    lines = old.split("\n")
    for line in diff.split("\n"):
        if line.startswith("-"):
            lines.remove(line[1:])
        elif line.startswith("+"):
            lines.append(line[1:])
    return sorted(lines)


@settings(max_examples=200)
@given(OUTPUTS, OUTPUTS)
def test_a_diff_names_every_line_that_differs_in_more_than_an_age(old: str, new: str) -> None:
    change = output_change(old, new)
    assert change is not None
    ages = re.compile(r"\d+[smhd]")
    expected = sorted(re.sub(" {2,}", "  ", ages.sub("", line)) for line in new.split("\n"))
    assert sorted(re.sub(" {2,}", "  ", ages.sub("", line)) for line in patched(old, change.diff)) == expected
    if old == new:
        assert change.diff == ""


@settings(max_examples=60)
@given(st.lists(OUTPUTS, min_size=2, max_size=5), st.booleans())
async def test_an_answer_is_never_larger_and_never_says_unchanged_of_another_text(texts: list[str], long: bool) -> None:
    polling = Polling()
    tail = "\nline of the end" * 40 if long else ""
    shown: dict[int, str] = {}
    for step, text in enumerate((each + tail for each in texts), start=1):
        call = tool_call(f"call-{step}")
        full = result(call, text)
        answer = await polling.join(call, full)
        assert COUNTER.count_message(answer) <= COUNTER.count_message(full)
        shown[step] = text
        if match := re.match(r"Unchanged since step (\d+) \(", answer.text):
            assert shown[int(match[1])] == text
