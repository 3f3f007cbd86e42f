"""No escape sequence of a terminal leaves a toolset, and none hides a secret from the masks."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from holmes.redaction.redactor import Redactor
from holmes.toolsets.wrappers import Redacted
from holmes.values.messages import ToolCallId
from holmes.values.tools import ToolInvocation, ToolResult
from tests.support.planted_forms import random_text
from tests.support.toolsets import FunctionToolset, tool
from tests.support.views import view

if TYPE_CHECKING:
    from holmes.toolsets.kubernetes_view import Json

REDACTOR = Redactor(b"a key of the tests")
TOKEN = "gh" + "p_" + random_text("coloured", 36)
COLOURED = (
    f"\x1b[33m{TOKEN}\x1b[0m",
    f"^[[33m{TOKEN}^[[0m",
    f"\\e[33m{TOKEN}\\e[0m",
    f"\\x1b[1;33m{TOKEN}\\x1b[m",
    f"\\u001b[33m{TOKEN}\\u001b[0m",
    f"\x9b33m{TOKEN}\x9b0m",
    f"\x1b]8;;http://x.example\x1b\\{TOKEN}\x1b]8;;\x1b\\",
    f"{TOKEN[:9]}\x1b[33m{TOKEN[9:]}",
)
TRACES = ("\x1b", "\x9b", "^[", "[33m", "\\e[", "u001b", "x1b")


async def _returned(result: ToolResult, redactor: Redactor | None) -> ToolResult:
    async def body(_: ToolInvocation) -> ToolResult:
        return result

    wrapped = Redacted(FunctionToolset(bodies=((tool("run"), body),)), redactor)
    return await wrapped.call(ToolInvocation(call_id=ToolCallId("1"), tool=wrapped.tools[0], arguments={}))


@pytest.mark.parametrize("text", COLOURED)
async def test_a_result_has_no_sequences_and_no_secret_behind_them(text: str) -> None:
    given = ToolResult(status="error", data=f"login {text} ok", error=f"{text} refused", invocation=f"run {text}")
    masked = str(await _returned(given, REDACTOR))
    assert TOKEN not in masked
    assert masked.count("(REDACTED:github-token") == 3
    plain = await _returned(given, None)
    assert plain == ToolResult(
        status="error", data=f"login {TOKEN} ok", error=f"{TOKEN} refused", invocation=f"run {TOKEN}"
    )


@pytest.mark.parametrize("text", COLOURED)
def test_no_form_of_the_view_shows_sequences(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # The view empties the variables of its process; here that is ours.
    for name in list(os.environ):
        monkeypatch.setenv(name, os.environ[name])
    event: Json = {"kind": "Event", "metadata": {"name": "a", "annotations": {"note": text}}, "message": f"saw {text}"}
    document = json.dumps({"kind": "List", "items": [event]})
    described = f"Name:  a\nEvents:\n  Warning  Failed  saw {text}\n"
    shown = (
        view(["yaml"], document),
        view(["columns", "M:.message,N:.metadata.annotations"], document),
        view(["jq", ".. | strings"], document),
        view(["count", ".message"], document),
        view(["describe"], described),
        view(["text"], described),
        view(["manifest"], document),
    )
    for each in shown:
        assert TOKEN in each
        assert [trace for trace in TRACES if trace in each] == []


def test_colours_do_not_hide_the_value_of_a_secret_in_a_table() -> None:
    value = "tintenfisch-blau"
    vault: Json = {
        "kind": "Vault",
        "spec": {"stringData": {"pin": f"\x1b[33m{value}\x1b[0m"}, "mode": "\x1b[1mfast\x1b[0m"},
    }
    shown = view(["table"], f"PIN  MODE\n^[[33m{value}^[[0m  ^[[1mfast^[[0m\n", objects=json.dumps(vault))
    assert shown.split() == ["PIN", "MODE", "(hidden)", "fast"]
