"""Secrets that the user typed: masked once for the whole process, so that they look the same everywhere."""

from __future__ import annotations

import asyncio
import json
import re
from typing import TYPE_CHECKING

import pytest

from holmes.app.requests import Attachment
from holmes.cli.commands.inputs import Question
from holmes.cli.commands.session import question_mask
from holmes.redaction.redactor import Redactor
from holmes.stores.conversation_store import ConversationStore
from tests.support.command_line import Home
from tests.support.kubernetes_api import document, kubernetes_api, write_kubeconfig

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.row("N13")

SECRET = "postgres://shop:hunter2hunter2@db/x"
PLACEHOLDER = re.compile(r"\(REDACTED:[^)]*\)")


async def test_question_and_attachments_are_masked_while_the_event_loop_goes_on() -> None:
    mask = question_mask(Redactor(bytes(32)))
    log = Attachment(name="a.log", text=f"connect to {SECRET}\n" + "all is well here\n" * 400_000)
    turns = 0

    async def watch() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0.005)
            turns += 1

    watching = asyncio.create_task(watch())
    masked = await mask(Question(text=f"why {SECRET}?", attachments=(log,)))
    watching.cancel()
    assert "hunter2" not in masked.text + masked.attachments[0].text
    assert turns > 5
    again = await mask(masked)
    assert again == masked
    off = await question_mask(None)(Question(text=SECRET, attachments=()))
    assert off.text == SECRET


@pytest.mark.parametrize(
    "variables",
    [{"HOLMES_TOOL_RESULT_STORAGE_PATH": "/dev/null/results"}, {"HOLMES_TOOL_RESULT_STORAGE_ENABLED": "false"}],
)
def test_a_process_that_can_keep_no_key_has_one_all_the_same(variables: dict[str, str], tmp_path: Path) -> None:
    script, toolset = tmp_path / "script.json", tmp_path / "tools.yaml"
    script.write_text(json.dumps([{"tool_calls": [{"name": "ping", "arguments": {}}]}, {"text": "Done."}]))
    tool = {"name": "ping", "description": "Says where the database is.", "command": f"echo {SECRET}"}
    toolset.write_text(json.dumps({"toolsets": {"own": {"description": "Own.", "tools": [tool]}}}))
    with kubernetes_api() as api:
        api.on("/version", document({"gitVersion": "v1.34.0"}))
        kubeconfig = str(write_kubeconfig(tmp_path, api.url))
        home = Home.make(tmp_path / "home", KUBECONFIG=kubeconfig, MODEL=f"scripted:{script}", **variables)
        assert home.run("ask", f"why {SECRET}?", "-t", str(toolset)).exit_code == 0
    conversation = ConversationStore(home.path / ".holmes/conversations", retention_days=1, limit=9).latest()
    assert conversation is not None
    with conversation:
        text = "\n".join(message.text for message in conversation.messages)
    assert "hunter2" not in text
    assert len(PLACEHOLDER.findall(text)) == 2
    assert len(set(PLACEHOLDER.findall(text))) == 1
    assert not list(home.path.rglob("redaction.key"))
