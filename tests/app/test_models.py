"""What models taught this process is kept for each endpoint and model, and for no longer than it holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holmes.app.models import build_models
from holmes.app.toolsets import OpenToolsets
from holmes.core.model_chain import LoopModel
from holmes.core.policy import ContextPolicy
from holmes.settings.load import load_settings
from holmes.stores.result_store import FileResultStore
from holmes.toolsets.readiness import Readiness
from holmes.toolsets.stored_results import StoredResultsToolset
from holmes.values.messages import AssistantMessage
from tests.support.counting_model import CountingModel

if TYPE_CHECKING:
    from pathlib import Path

    from holmes.core.model_chain import Calibration

LIST = """\
one: {model: openai/qwen, base_url: "http://one.test/v1"}
same: {model: openai/qwen, base_url: "http://one.test/v1/", temperature: 0.5}
elsewhere: {model: openai/qwen, base_url: "http://two.test/v1"}
other: {model: openai/llama, base_url: "http://one.test/v1"}
"""


def calibration(tmp_path: Path, model: str) -> Calibration:
    folder = tmp_path / ".holmes"
    folder.mkdir(exist_ok=True)
    (folder / "model_list.yaml").write_text(LIST, encoding="utf-8")
    settings = load_settings({"HOME": str(tmp_path)}, None, {"model": model})
    return build_models(settings).models[0].calibration


def test_a_window_is_shared_by_the_entries_of_one_model_at_one_endpoint_and_by_no_others(tmp_path: Path) -> None:
    calibration(tmp_path, "one").learn_window(30_000)
    learned = {name: calibration(tmp_path, name).learned_window_tokens for name in ("same", "elsewhere", "other")}
    assert learned == {"same": 30_000, "elsewhere": None, "other": None}


def test_a_learned_window_does_not_outlive_its_hour_in_the_tools_of_an_investigator(tmp_path: Path) -> None:
    model = LoopModel(
        model=CountingModel(lambda _: AssistantMessage(text="."), window_tokens=128_000), policy=ContextPolicy()
    )
    opened = OpenToolsets(readiness=Readiness(ready=(), statuses=()), warnings=(), lint_warnings=(), own_files=())
    store = FileResultStore(tmp_path, retention_seconds=60, quota_bytes=10_000)
    before = opened.create((model,), store, None, None)
    model.calibration.learn_window(8_000)
    after = opened.create((model,), store, None, None)
    caps = [toolset.cap_tokens for toolset in (*before, *after) if isinstance(toolset, StoredResultsToolset)]
    assert caps[0] == caps[1]
