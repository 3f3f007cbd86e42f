"""Plays a scenario with the real loop, stages, stores and files, and checks the conversation after each chapter."""

from __future__ import annotations

import resource
from collections import Counter
from contextlib import aclosing, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, assert_never

import pytest

from holmes.core.context_usage import compact_conversation
from holmes.core.hooks import Always, CallTool, CompactContext, Hook, InjectMessage, Log, MessageCount, TurnCount
from holmes.core.loop_run import LoopParts
from holmes.core.model_chain import LoopModel
from holmes.core.policies import named_policy
from holmes.core.tool_calling_llm import ToolCallingLLM
from holmes.core.tools_utils.tool_executor import IDENTICAL_CALL, ToolExecutor, tool_result_message
from holmes.stores.conversation_store import ConversationStore, ConversationStoreError
from holmes.stores.result_store import FileResultStore
from holmes.tokens import TokenCounter
from holmes.toolsets.stored_results.toolset import StoredResultsToolset
from holmes.values.events import (
    AnswerFinished,
    AssistantReplied,
    ContextOverflowed,
    HistoryReplaced,
    ModelSwitched,
    RunFailed,
    ToolCallFinished,
)
from holmes.values.messages import NOTHING_HANDED_OVER, HandedOver, Image, Text, UserMessage, user_text
from tests.core.invariants.reach import Reachable
from tests.core.stateful.disk import UnreliableDisk
from tests.core.stateful.outputs import tool_output
from tests.core.stateful.provider import (
    BROKEN,
    SUMMARISERS,
    TOO_LONG,
    Provider,
    Script,
    broken,
    is_for_summary,
    overflow,
)
from tests.core.truncation.summaries import RecordingSteps
from tests.support.conversations import png
from tests.support.counting_model import pairing_errors
from tests.support.investigations import PROMPTS
from tests.support.toolsets import FunctionToolset, tool

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator
    from pathlib import Path

    from holmes.core.policy import ContextPolicy
    from holmes.stores.conversation_store import Conversation
    from holmes.values.errors import ModelError
    from holmes.values.events import AgentEvent
    from holmes.values.messages import Message, ToolCall, ToolMessage
    from holmes.values.tools import ToolInvocation, ToolResult
    from tests.core.stateful.scenarios import Chapter, Scenario

LOSS = ("could not be stored", "dropped", "cut: ")
_SMALL_FILE_BYTES = 16_000
_LONG_QUESTION_CHARACTERS = 5_000
_ALWAYS_EXPECTED = ("No answer within", "empty replies (finish")
HOOKS = (
    Hook(id="log", condition=Always(), action=Log(message="turn {turn}: {tokens} tokens, {messages} messages")),
    Hook(id="remind", condition=TurnCount(count=3), action=InjectMessage(message="Be brief."), on="turn_start"),
    Hook(id="look", condition=TurnCount(count=2), action=CallTool(action="kubectl_get", params={"seed": "7000003"})),
    Hook(id="shorten", condition=MessageCount(threshold=40), action=CompactContext(strategy="truncate")),
)


class WatchedExecutor(ToolExecutor):
    """Keeps what each call returned."""

    def __init__(self, toolsets: tuple[FunctionToolset | StoredResultsToolset, ...]) -> None:
        super().__init__(toolsets)
        self.returned: list[tuple[ToolCall, ToolResult]] = []

    async def run(self, call: ToolCall, handed_over: HandedOver = NOTHING_HANDED_OVER) -> ToolResult:
        result = await super().run(call, handed_over)
        self.returned.append((call, result))
        return result


@dataclass(slots=True, kw_only=True)
class Run:
    """What the reader of one stream saw; `end` is None when it was cancelled."""

    events: list[AgentEvent] = field(default_factory=list)
    end: AnswerFinished | RunFailed | HistoryReplaced | None = None


class PlayedConversation:
    """One conversation on disk, and everything around it that changes."""

    def __init__(self, scenario: Scenario, folder: Path) -> None:
        self.scenario = scenario
        self.provider = Provider(scenario.windows_tokens, scenario.factor)
        self.ends: Counter[Literal["answer", "failure", "cancelled"]] = Counter()
        self._folder = folder
        self._disk = UnreliableDisk(FileResultStore(folder / "results"))
        self._small_files = False
        self._is_kept = True
        self._task: UserMessage | None = None
        self._must_reach: dict[bytes, str] = {}
        self._asked: list[str] = []
        self._conversations = ConversationStore(folder / "conversations", retention_days=30, limit=50)
        self._conversation: Conversation = self._conversations.start()
        self._conversation.replace(scenario.start)
        self._start_process()

    @property
    def messages(self) -> tuple[Message, ...]:
        """The conversation as it stands."""
        return self._conversation.messages

    async def play(self) -> None:
        """All chapters."""
        for chapter in self.scenario.chapters:
            await self._interlude(chapter)
            await self._ask(chapter)

    # --- what happens -------------------------------------------------------------------------------------------------

    def _start_process(self) -> None:
        """What does not outlive a process: calibration, counters, the loop."""
        policy = self._policy()
        counter = TokenCounter()
        cap_tokens = policy.spill.cap_tokens(min(self.scenario.windows_tokens))
        played = FunctionToolset(
            bodies=tuple((tool(name, "seed"), _body) for name in ("kubectl_get", "kubectl_logs", "fetch_skill"))
        )
        stored = StoredResultsToolset(store=self._disk, counter=counter, cap_tokens=cap_tokens, vision=True)
        self._executor = WatchedExecutor((played, stored))
        self._parts = LoopParts(
            models=tuple(LoopModel(model=model, policy=policy) for model in self.provider.models),
            executor=self._executor,
            store=self._disk,
            prompts=PROMPTS,
            steps=RecordingSteps(),
        )

    def _policy(self) -> ContextPolicy:
        policy = named_policy(self.scenario.policy)
        return replace(policy, hooks=(*policy.hooks, *HOOKS)) if self.scenario.hooks else policy

    def _restart(self) -> None:
        before = self.messages
        self._conversation.close()
        reopened = self._conversations.latest()
        assert reopened is not None
        assert not self._is_kept or reopened.messages == before
        reopened.replace(before)
        self._conversation = reopened
        self._disk = self._disk.reopened(FileResultStore(self._folder / "results"))
        self._start_process()

    async def _interlude(self, chapter: Chapter) -> None:
        match chapter.interlude:
            case "nothing":
                pass
            case "compact":
                await self._compact(chapter)
            case "restart":
                self._restart()
            case "disk full":
                self._disk.puts_left = 0
            case "disk fills up":
                self._disk.puts_left = 1 + chapter.trouble_at
            case "small files":
                self._small_files = True
            case "disk back":
                self._disk.puts_left, self._small_files = None, False
            case _:
                assert_never(chapter.interlude)

    async def _compact(self, chapter: Chapter) -> None:
        self.provider.script = Script(summarise=SUMMARISERS[chapter.summariser])
        run = await self._read(compact_conversation(self._fresh_parts(), self.messages), None)
        assert isinstance(run.end, HistoryReplaced | RunFailed)
        if isinstance(run.end, HistoryReplaced):
            self._conversation.replace(run.end.messages)
            self._is_kept = True
        assert run.end.stats.cost == pytest.approx(sum(stats.cost for _, stats in self.provider.charged))
        await self._check(run)

    async def _ask(self, chapter: Chapter) -> None:
        self.provider.script = self._script(chapter)
        self.provider.forget()
        number = len(self._asked) + 1
        text = f"question {number}: why? " + f"ERROR {number} dial tcp 10.0.3.7\n" * (chapter.question_bytes // 26)
        asked = [*self._attachments(chapter), user_text(text)]
        self._asked.append(text)
        for message in asked:
            self._conversation.append(message)
        self._is_kept = True
        loop = ToolCallingLLM(self._fresh_parts(), max_steps=self.scenario.max_steps)
        returned, refused = len(self._executor.returned), self._disk.refused
        run = await self._read(loop.call_stream(self.messages), chapter.cancel_after)
        if isinstance(run.end, AnswerFinished | RunFailed):
            self._conversation.replace(run.end.messages)
            self._is_kept = True
            self._check_end(run.end, chapter)
            self._check_costs(run, run.end)
        else:
            self.ends["cancelled"] += 1
        disk_worked = self._disk.refused == refused
        self._note_outputs(run, self._executor.returned[returned:], disk_worked=disk_worked)
        await self._check(run, question=text if disk_worked else None)

    def _attachments(self, chapter: Chapter) -> list[UserMessage]:
        if chapter.seeds[0] % 5:
            return []
        log = Text(text=f"a log of {len(self._asked)}\n" + "web-1 refused\n" * (chapter.question_bytes // 20))
        return [UserMessage(parts=(log, png(300, 300)), kind="attachment")]

    def _script(self, chapter: Chapter) -> Script:
        window = min(self.scenario.windows_tokens)
        troubles: list[ModelError] = []
        match chapter.trouble:
            case "none":
                pass
            case "overflow":
                troubles = [overflow(None)]
            case "smaller window":
                troubles = [overflow(window * 4 // 5)]
            case "two overflows":
                troubles = [overflow(None), overflow(None)]
            case "broken":
                troubles = [broken()]
            case _:
                assert_never(chapter.trouble)
        return Script(
            seeds=chapter.seeds, troubles={chapter.trouble_at: troubles}, summarise=SUMMARISERS[chapter.summariser]
        )

    def _fresh_parts(self) -> LoopParts:
        """The same process, with a runner of steps that has seen none."""
        self.provider.forget()
        return replace(self._parts, steps=RecordingSteps())

    async def _read(self, stream: AsyncGenerator[AgentEvent, None], cancel_after: int | None) -> Run:
        """Read the stream as a face does: keep what is said as it comes; close the stream after so many events."""
        run = Run()
        with small_files() if self._small_files else nullcontext():
            async with aclosing(stream) as events:
                async for event in events:
                    run.events.append(event)
                    if isinstance(event, AssistantReplied | ToolCallFinished):
                        self._keep(event.message)
                    if isinstance(event, AnswerFinished | RunFailed | HistoryReplaced):
                        run.end = event
                    elif len(run.events) == cancel_after:
                        break
        return run

    def _keep(self, message: Message) -> None:
        """As a face does: a conversation that cannot be kept goes on."""
        try:
            self._conversation.append(message)
            self._is_kept = True
        except ConversationStoreError:
            self._is_kept = False

    # --- what must hold -----------------------------------------------------------------------------------------------

    def _check_end(self, end: AnswerFinished | RunFailed, chapter: Chapter) -> None:
        assert pairing_errors(end.messages) == []
        if isinstance(end, AnswerFinished):
            self.ends["answer"] += 1
            return
        assert "\n" not in end.error
        assert any(sign in end.error for sign in self._expected_errors(chapter)), end.error
        self.ends["failure"] += 1

    def _expected_errors(self, chapter: Chapter) -> list[str]:
        """What may end this run: what the script did to it, or questions that are too long for the window."""
        expected = [*_ALWAYS_EXPECTED]
        if chapter.trouble == "broken":
            expected.append(BROKEN)
        elif chapter.trouble != "none":
            expected.append(TOO_LONG)
        if max(map(len, self._asked)) > _LONG_QUESTION_CHARACTERS:
            expected += ["tokens exceed", "does not fit in the model's context window"]
        return expected

    def _check_costs(self, run: Run, end: AnswerFinished | RunFailed) -> None:
        charged = self.provider.charged
        assert end.stats.calls == sum(stats.calls for _, stats in charged)
        assert end.stats.prompt_tokens == sum(stats.prompt_tokens for _, stats in charged)
        assert end.stats.completion_tokens == sum(stats.completion_tokens for _, stats in charged)
        assert end.stats.cost == pytest.approx(sum(stats.cost for _, stats in charged))
        summaries = [stats for request, stats in charged if is_for_summary(request)]
        assert end.stats.compaction_tokens == sum(stats.total_tokens for stats in summaries)
        assert end.stats.compaction_cost == pytest.approx(sum(stats.cost for stats in summaries))
        assert end.stats.compactions == sum(event.kind == "history_compacted" for event in run.events)

    def _note_outputs(self, run: Run, returned: list[tuple[ToolCall, ToolResult]], *, disk_worked: bool) -> None:
        """What of the outputs must be reachable from now on; what could not be stored must be whole or say so."""
        joined: dict[str, list[ToolMessage]] = {}
        for event in run.events:
            # A provider may use an id again once its message was removed. A call that another one answers did not run.
            if isinstance(event, ToolCallFinished) and not event.message.text.startswith(IDENTICAL_CALL):
                joined.setdefault(event.call.id, []).append(event.message)
        for call, result in returned:
            waiting = joined.get(call.id)
            message = waiting.pop(0) if waiting else None
            if not result.spillable or result.status == "approval_required":
                continue
            original = tool_result_message(call, result)
            contents = _contents(original)
            if message is None and not (run.end is not None and call.id.startswith("hook-") and disk_worked):
                continue
            if disk_worked or (message is not None and len(message.stored) == len(contents)):
                if message is not None:
                    assert len(message.stored) == len(contents), (original.text[:200], message)
                self._must_reach |= dict.fromkeys(contents, f"{call.name} {call.id}")
            elif message is not None and not message.stored:
                whole = message.parts == original.parts
                assert whole or any(word in message.text.lower() for word in LOSS), message.text[:400]

    async def _check(self, run: Run, *, question: str | None = None) -> None:
        messages = self.messages
        if run.end is not None:
            assert pairing_errors(messages) == []
        assert messages[0] == self.scenario.start[0]
        self._check_task(run)
        reachable = await Reachable.of(messages, self._disk)
        for content, source in self._must_reach.items():
            assert reachable.has(content), f"lost: {source}: {content[:300]!r}"
        if question is not None:
            assert reachable.has(question.encode()), "the question is lost"
            last = _requests(messages)[-1]
            assert last.text == question or last.stored

    def _check_task(self, run: Run) -> None:
        """The task stays as it was admitted by the first run that answered.

        Unless a smaller window came to light since: then what does not fit any more is stored, and can be read there.
        """
        requests = _requests(self.messages)
        if self._task is None and isinstance(run.end, AnswerFinished):
            self._task = requests[0]
        if run.end is not None and self._task is not None and requests[0] != self._task:
            assert any(isinstance(event, ContextOverflowed | ModelSwitched) for event in run.events)
            assert requests[0].stored
            assert len(requests[0].text) < len(self._task.text)
            self._must_reach[self._task.text.encode()] = "the task before it was shortened"
            self._task = requests[0]


def _requests(messages: tuple[Message, ...]) -> list[UserMessage]:
    return [message for message in messages if isinstance(message, UserMessage) and message.kind == "request"]


def _contents(message: ToolMessage) -> list[bytes]:
    text = [encoded(message.text)] if message.text else []
    return [*text, *(part.data for part in message.parts if isinstance(part, Image))]


def encoded(text: str) -> bytes:
    """The bytes under which a text is stored."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


async def _body(invocation: ToolInvocation) -> ToolResult:
    return tool_output(int(str(invocation.arguments["seed"])))


@contextmanager
def small_files() -> Iterator[None]:
    """No file can grow above 16 KB: what is left of a disk that is nearly full. Writes then fail like there."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (_SMALL_FILE_BYTES, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
