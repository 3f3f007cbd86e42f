"""What the tests of the adapter share: a model behind the scripted provider, and a recorder of its events."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from holmes.llm import litellm_loader
from holmes.llm.config import LitellmModelConfig
from holmes.llm.litellm_model import LitellmModel
from holmes.llm.retries import RetryPolicy
from holmes.values.events import AgentEvent, AttemptDiscarded, TextDelta
from holmes.values.messages import Message, SystemMessage, user_text
from holmes.values.model import ModelRequest
from holmes.values.tools import Parameter, ParameterSchema, Tool
from tests.support.openai_server import OpenAIServer, Script

# These are silenced while litellm is imported; pytest forgets that after the test that imported it.
LITELLM_WARNINGS = (
    "ignore:Accessing the '.*' attribute on the instance is deprecated:DeprecationWarning",
    "ignore:Pydantic serializer warnings:UserWarning",
    "ignore:Items? '.*' on TypedDict class '.*' \\w+ using the `ReadOnly` qualifier:UserWarning",
)

QUICK = RetryPolicy(backoff_seconds=0.01, max_backoff_seconds=0.05)
KEY = "sk-secret-1234567890"

TOOL = Tool(
    name="kubectl_get",
    description="Gets objects.",
    parameters=(Parameter(name="kind", schema=ParameterSchema(types=("string",), description="The kind.")),),
)


@dataclass(slots=True)
class Recorder:
    """Collects the events of a call."""

    events: list[AgentEvent] = field(default_factory=list)

    async def emit(self, event: AgentEvent) -> None:
        self.events.append(event)

    @property
    def deltas(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, TextDelta)]

    @property
    def discarded(self) -> list[AttemptDiscarded]:
        return [event for event in self.events if isinstance(event, AttemptDiscarded)]


@dataclass(slots=True)
class Provider:
    """A scripted provider with the model that asks it."""

    server: OpenAIServer
    model: LitellmModel


@contextmanager
def provider(
    script: Script,
    *,
    model: str = "openai/gpt-4o",
    policy: RetryPolicy = QUICK,
    change: Callable[[LitellmModelConfig], LitellmModelConfig] = lambda config: config,
) -> Iterator[Provider]:
    """A model whose provider plays `script`."""
    with OpenAIServer(script) as server:
        config = LitellmModelConfig(
            name="tested",
            model=model,
            api_key=KEY,
            api_base=server.base_url,
            request_timeout_seconds=5,
            context_window_tokens=128_000,  # or the server is asked for it
        )
        yield Provider(server=server, model=LitellmModel(change(config), retry_policy=policy))


def request(*messages: Message, tools: tuple[Tool, ...] = (TOOL,)) -> ModelRequest:
    """A request with a system message, a question when nothing else is given, and one tool."""
    return ModelRequest(
        messages=(SystemMessage(text="Be brief."), *(messages or (user_text("Why?"),))),
        tools=tools,
        tool_choice="auto",
        max_output_tokens=1000,
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """These warnings are none of ours; every other one is an error."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.filterwarnings(*LITELLM_WARNINGS))


@pytest.fixture(autouse=True)
async def _connections_are_closed() -> AsyncIterator[None]:
    yield
    await litellm_loader.close_connections()


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment without any provider's key."""
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "AZURE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
