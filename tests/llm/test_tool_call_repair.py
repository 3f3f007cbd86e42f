"""What small models write as tool calls: repaired when the meaning is clear, marked when it is not."""

from __future__ import annotations

import json

import pytest

from holmes.core.hooks import hook_call_id, hook_of
from holmes.llm.reply_assembler import RawToolCall
from holmes.llm.tool_call_repair import calls_in_text, repaired_calls

TOOLS = ("kubectl_get", "kubectl_logs")


def repaired(arguments: str, *, cut_off: bool = False) -> tuple[str, str | None]:
    raw = RawToolCall(id="a", name="kubectl_get", arguments=[arguments])
    (call,) = repaired_calls([raw], known_ids=(), cut_off=cut_off)
    return call.arguments, call.malformed


def test_valid_arguments_keep_their_bytes() -> None:
    odd = '{ "kind":"pod" ,  "b":1.0}'
    assert repaired(odd) == (odd, None)


@pytest.mark.parametrize("nothing", ["", "  ", "\n"])
def test_no_arguments_are_an_empty_object(nothing: str) -> None:
    assert repaired(nothing) == ("{}", None)


@pytest.mark.parametrize(
    "broken",
    [
        "{'kind': 'pod'}",
        '{"kind": "pod",}',
        '{"kind": "pod"',
        '{kind: "pod"}',
        '```json\n{"kind": "pod"}\n```',
        '"{\\"kind\\": \\"pod\\"}"',
    ],
)
def test_nearly_json_becomes_the_object_it_means(broken: str) -> None:
    arguments, malformed = repaired(broken)
    assert (json.loads(arguments), malformed) == ({"kind": "pod"}, None)


@pytest.mark.parametrize("hopeless", ["get the pods", "[1, 2]", "null", "17", "{", "}{"])
def test_what_is_no_object_is_marked_and_kept(hopeless: str) -> None:
    assert repaired(hopeless) == ("{}", hopeless)


@pytest.mark.parametrize("piece", ["{", "{'a':[", "{[", '{"a":', "{a:["])
def test_what_is_nested_without_end_is_marked(piece: str) -> None:
    deep = piece * 30_000
    assert repaired(deep) == ("{}", deep)
    assert calls_in_text(f"```json\n{deep}}}\n```", TOOLS) == (f"```json\n{deep}}}\n```", [])


def test_of_a_flood_of_broken_arguments_only_the_first_are_repaired() -> None:
    """Each takes milliseconds in which a server does nothing else."""
    broken = "{" + ", ".join(f"'key{number}': 'value'" for number in range(500))
    raws = [RawToolCall(id=f"{number}", name="x", arguments=[broken]) for number in range(500)]
    calls = repaired_calls(raws, known_ids=(), cut_off=False)
    assert (calls[0].malformed, calls[-1].malformed) == (None, broken)


def test_halves_of_characters_are_replaced_in_arguments() -> None:
    for written in (r'{"kind": "a\ud800b"}', r"{'kind': 'a\ud800b'}"):
        arguments, malformed = repaired(written)
        assert (json.loads(arguments), malformed) == ({"kind": "a\N{REPLACEMENT CHARACTER}b"}, None)
    assert repaired("half \ud800") == ("{}", "half \N{REPLACEMENT CHARACTER}")
    assert json.loads(repaired(r'{"kind": "\ud83d\ude00"}')[0]) == {"kind": "\U0001f600"}


def test_arguments_that_the_token_limit_cut_are_not_completed() -> None:
    assert repaired('{"kind": "po', cut_off=True) == ("{}", '{"kind": "po')
    assert repaired('{"kind": "pod"}', cut_off=True) == ('{"kind": "pod"}', None)


def test_a_call_that_the_token_limit_cut_before_its_arguments_is_marked() -> None:
    assert repaired("", cut_off=True) == ("{}", "")


def test_ids_are_unique_within_the_reply_and_the_conversation() -> None:
    raws = [RawToolCall(id=given, name="kubectl_get") for given in ("a", "a", "", "b", "old", "c\ud800")]
    ids = [call.id for call in repaired_calls(raws, known_ids={"old"}, cut_off=False)]
    assert (ids[0], ids[3]) == ("a", "b")
    assert len(set(ids)) == 6
    assert not {"", "old", "c\ud800"} & set(ids)


@pytest.mark.parametrize(
    ("written", "name"),
    [
        (" kubectl_get\n", "kubectl_get"),
        ("functions.kubectl_get", "functions_kubectl_get"),
        ("get pods", "get_pods"),
        ("holen_für", "holen_f_r"),
        ("", "no_name"),
        ("x" * 300, "x" * 64),
    ],
)
def test_a_name_that_no_provider_takes_back_is_changed(written: str, name: str) -> None:
    """It joins the conversation, and each later request would be refused for it."""
    raw = RawToolCall(id="a", name=written, arguments=["{}"])
    assert repaired_calls([raw], known_ids=(), cut_off=False)[0].name == name


def test_no_call_of_a_model_has_an_id_of_a_hook() -> None:
    """What a person decided about a hook holds for every call with an id of that hook."""
    (made,) = repaired_calls([RawToolCall(id=hook_call_id("knock", 7), name="x")], known_ids=(), cut_off=False)
    assert hook_of(made.id) is None


CALL = '{"name": "kubectl_get", "arguments": {"kind": "pod"}}'


def test_a_flood_of_calls_in_text_stays_text() -> None:
    flood = f"```json\n{CALL}\n```\n" * 5_000
    assert calls_in_text(flood, TOOLS) == (flood, [])


@pytest.mark.parametrize(
    "block",
    [
        f"```json\n{CALL}\n```",
        f"```\n{CALL}\n```",
        f"```tool_call\n{CALL}\n```",
        f"<tool_call>\n{CALL}\n</tool_call>",
        f"<tool_call>{CALL}",
        '```json\n{"name": "kubectl_get", "parameters": {"kind": "pod"}}\n```',
        '```json\n{"function": {"name": "kubectl_get", "arguments": "{\\"kind\\": \\"pod\\"}"}}\n```',
        "```json\n{'name': 'kubectl_get', 'arguments': {'kind': 'pod'},}\n```",
        '```json\n{"name": "kubectl_get", "arguments": {"kind": "pod"}\n```',
    ],
)
def test_a_written_call_is_found_and_removed_from_the_text(block: str) -> None:
    text, calls = calls_in_text(f"I look.\n\n{block}", TOOLS)
    assert text == "I look."
    assert [(call.name, json.loads(call.arguments)) for call in calls] == [("kubectl_get", {"kind": "pod"})]


def test_several_written_calls_keep_their_order_and_get_different_ids() -> None:
    logs = '{"name": "kubectl_logs", "arguments": {}}'
    text, calls = calls_in_text(f"```json\n{CALL}\n```\nand\n```json\n{logs}\n```", TOOLS)
    assert text == "and"
    assert [call.name for call in calls] == ["kubectl_get", "kubectl_logs"]
    assert calls[0].id != calls[1].id


@pytest.mark.parametrize(
    "text",
    [
        f"Run this yourself:\n```json\n{CALL}\n```\nIt lists the pods.",
        f"The pod is killed for its memory. To see it, run this:\n```json\n{CALL}\n```",
        f"# Root cause\nmemory\n\n```json\n{CALL}\n```",
        f"- memory\n- next step:\n```json\n{CALL}\n```",
        f"I called <tool_call>{CALL}</tool_call> and saw three pods.",
        f"```json\n{CALL}\n```\n\n```yaml\nkind: Pod\n```",
        'The manifest:\n```json\n{"kind": "Pod", "name": "checkout"}\n```',
        'Run this:\n```json\n{"name": "rm_rf", "arguments": {}}\n```',
        "```yaml\nname: kubectl_get\n```",
        "```json\n[1, 2]\n```",
        f"> ```json\n> {CALL}\n> ```",
        f"- ```json\n  {CALL}\n  ```",
        f"```\nThe agent wrote {CALL} and failed.\n```",
        f"```json\n{CALL} was refused\n```",
        '```json\n{"name": "kubectl_get", "status": "failed", "seconds": 3}\n```',
        '<tool_call>{"name": "kubectl_get", "arguments": {"kind": "po',
        '<tool_call>{"name": "kubectl_get", "arguments": {"kind": "pod"',
        '```json\n{"name": "kubectl_get", "arguments": {"kind": "po\n```',
        "no block at all",
    ],
)
def test_other_blocks_stay_text(text: str) -> None:
    assert calls_in_text(text, TOOLS) == (text, [])


DEEP = "[" * 20_000


@pytest.mark.parametrize(
    "arguments",
    [
        DEEP,
        '{"kind": ' + DEEP,
        '{"a":' * 20_000 + "1" + "}" * 20_000,
        '{"a":' * 150 + "1" + "}" * 150,
        json.dumps(DEEP),
    ],
)
def test_arguments_that_are_nested_too_deeply_are_marked(arguments: str) -> None:
    assert repaired(arguments) == ("{}", arguments)


def test_deep_blocks_in_the_text_stay_text() -> None:
    for block in (DEEP, '{"name": "kubectl_get", "arguments": ' + '{"a":' * 150 + "1" + "}" * 151):
        text = f"```json\n{block}\n```"
        assert calls_in_text(text, TOOLS) == (text, [])


def test_arguments_as_deep_as_manifests_are_kept() -> None:
    manifest = '{"a":' * 60 + "1" + "}" * 60
    assert repaired(manifest) == (manifest, None)


def test_a_block_that_is_nothing_but_space_is_looked_through_quickly() -> None:
    text = "```\n" + " " * 300_000
    assert calls_in_text(text, TOOLS) == (text, [])
