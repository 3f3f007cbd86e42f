"""The shipped scripted model: what tests, docs and demos rely on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holmes.app.models import build_model
from holmes.llm.config import LitellmModelConfig
from holmes.llm.scripted import ScriptedModel, ScriptedReply, scripted_call
from holmes.values.errors import ConfigError, ContextOverflow, ModelError
from holmes.values.model import ModelLimits, ModelRequest
from holmes.values.stats import RequestStats
from tests.llm.conftest import Recorder, request


async def test_replies_come_in_order_with_their_text_in_small_pieces(recorder: Recorder) -> None:
    model = ScriptedModel(
        [ScriptedReply(text="I look.", tool_calls=(scripted_call("get", kind="pod"),)), ScriptedReply(text="Memory.")],
        delta_characters=4,
    )
    first, second = [await model.complete(request(), recorder.emit) for _ in range(2)]
    assert recorder.deltas == ["I lo", "ok.", "Memo", "ry."]
    assert (first.finish_reason, second.finish_reason) == ("tool_calls", "stop")
    assert json.loads(first.message.tool_calls[0].arguments) == {"kind": "pod"}
    assert len(model.requests) == 2


async def test_calls_get_different_ids_over_the_whole_script(recorder: Recorder) -> None:
    model = ScriptedModel([ScriptedReply(tool_calls=(scripted_call("get"), scripted_call("get")))] * 2)
    replies = [await model.complete(request(), recorder.emit) for _ in range(2)]
    ids = [call.id for reply in replies for call in reply.message.tool_calls]
    assert len(set(ids)) == 4


async def test_an_entry_may_look_at_the_request_or_be_an_error(recorder: Recorder) -> None:
    def by_size(asked: ModelRequest) -> ScriptedReply:
        return ScriptedReply(text=str(len(asked.messages)))

    error = ContextOverflow("too long", provider="p", model="m", window_tokens=5)
    model = ScriptedModel([by_size, error])
    assert (await model.complete(request(), recorder.emit)).message.text == "2"
    with pytest.raises(ContextOverflow):
        await model.complete(request(), recorder.emit)


async def test_the_whole_script_may_be_a_function(recorder: Recorder) -> None:
    model = ScriptedModel(lambda asked: ScriptedReply(text=asked.tool_choice))
    assert (await model.complete(request(), recorder.emit)).message.text == "auto"


async def test_the_end_of_the_script_is_an_error_that_says_so(recorder: Recorder) -> None:
    model = ScriptedModel([ScriptedReply(text="only")], name="demo")
    await model.complete(request(), recorder.emit)
    with pytest.raises(ModelError, match="The script of model 'demo' has no reply for request 2") as caught:
        await model.complete(request(), recorder.emit)
    assert not caught.value.retryable


async def test_limits_and_costs_are_the_scripts(recorder: Recorder) -> None:
    limits = ModelLimits(context_window_tokens=10, max_output_tokens=5)
    stats = RequestStats(prompt_tokens=7, calls=1, cost=0.5)
    model = ScriptedModel([ScriptedReply(text="x", stats=stats)], limits=limits)
    assert model.limits == limits
    assert (await model.complete(request(), recorder.emit)).stats == stats


SCRIPT = """
- text: I look.
  tool_calls:
    - name: kubectl_get
      arguments: {kind: pod, namespace: shop}
- error: the provider is down
- overflow_window_tokens: 8192
- text: It is memory.
"""


@pytest.mark.parametrize("suffix", ["yaml", "json"])
async def test_a_file_plays_the_same(suffix: str, tmp_path: Path, recorder: Recorder) -> None:
    path = tmp_path / f"script.{suffix}"
    if suffix == "json":
        import yaml

        path.write_text(json.dumps(yaml.safe_load(SCRIPT)))
    else:
        path.write_text(SCRIPT)
    model = build_model(LitellmModelConfig(name="demo", model=f"scripted:{path}"))
    await model.check()
    first = await model.complete(request(), recorder.emit)
    assert json.loads(first.message.tool_calls[0].arguments) == {"kind": "pod", "namespace": "shop"}
    with pytest.raises(ModelError, match="the provider is down"):
        await model.complete(request(), recorder.emit)
    with pytest.raises(ContextOverflow) as caught:
        await model.complete(request(), recorder.emit)
    assert caught.value.window_tokens == 8192
    last = await model.complete(request(), recorder.emit)
    assert (last.message.text, last.model) == ("It is memory.", "demo")
    await model.aclose()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("text: x", "must be a list of replies"),
        ("- txt: x", "reply 1: unknown key 'txt'; available keys: text"),
        ("- hello", "reply 1: expected a mapping with one of the keys"),
        ("- text: x\n- tool_calls: [{arguments: {}}]", "reply 2: expected a tool call with a name"),
        ("- tool_calls: [{name: get, arguments: [1]}]", "the arguments of 'get' must be a mapping"),
        ("- [", "is not valid YAML or JSON"),
    ],
)
def test_a_broken_file_is_one_line_that_names_the_place(content: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "script.yaml"
    path.write_text(content)
    with pytest.raises(ConfigError) as caught:
        ScriptedModel.from_file(path)
    assert words in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Cannot read the script"):
        ScriptedModel.from_file(tmp_path / "none.yaml")


@pytest.mark.parametrize("path", ["/dev/zero", "/dev"])
def test_only_a_regular_file_is_read(path: str) -> None:
    with pytest.raises(
        ConfigError, match=rf"Cannot read the script '{path}': it is not a regular file; check the path"
    ):
        ScriptedModel.from_file(Path(path))


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "script.yaml"
    with path.open("wb") as file:
        file.truncate(10_000_001)
    with pytest.raises(ConfigError, match="it is larger than 10 MB"):
        ScriptedModel.from_file(path)
