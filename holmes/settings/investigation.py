"""Settings for one question: the cluster, limits, tools and stored files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, JsonValue, field_validator

from holmes.settings.setting import CommaSeparated, Setting, SettingsGroup

_NAMESPACE = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


class InvestigationSettings(SettingsGroup):
    max_steps: Annotated[int, Setting("MAX_STEPS", option="--max-steps"), Field(ge=1)] = 100
    """Maximum number of model replies for one question. The last reply must be the answer."""

    cluster_name: Annotated[str | None, Setting("CLUSTER_NAME")] = None
    """Name of the cluster in prompts and notifications. With `clusters`, each cluster has its own name."""

    kubeconfig: Annotated[Path | None, Setting(key="kubeconfig", option="--kubeconfig")] = None
    """Path of the kubeconfig file. Default: `KUBECONFIG`, `~/.kube/config`, or the service account of the pod."""

    kube_context: Annotated[str | None, Setting(key="kube_context", option="--context"), Field(min_length=1)] = None
    """Name of the kubeconfig context. Default: the current context."""

    namespace: Annotated[str | None, Setting(key="namespace", option="--namespace"), Field(min_length=1)] = None
    """Namespace that the question is about. Default: the model determines it."""

    scoped_namespaces: Annotated[CommaSeparated, Setting("SCOPED_NAMESPACES")] = ()
    """Restrict Holmes to these namespaces. In the variable, separate the namespaces with commas. Default: all
    namespaces that the credentials allow.
    """

    system_prompt_additions: Annotated[
        str | None, Setting(key="system_prompt_additions", option="--system-prompt-additions")
    ] = None
    """Text to add to the system prompt."""

    first_look: Annotated[bool, Setting("HOLMES_FIRST_LOOK")] = True
    """Show the model the facts of the built-in rules about the subject of a question before its first reply."""

    answer_review: Annotated[bool, Setting("HOLMES_ANSWER_REVIEW")] = True
    """Compare each answer of a model with the facts of the built-in rules. A cause that no cited result proves, or that
    the facts contradict, gives the model one more reply. Then the facts lead.
    """

    details: Annotated[bool, Setting("HOLMES_DETAILS", key="details", option="--details")] = False
    """Print all evidence and notes of an answer of the built-in rules. By default, it has at most 20 lines."""

    prompt: Annotated[Literal["auto", "full", "short"], Setting("HOLMES_PROMPT")] = "auto"
    """Form of the system prompt. `short` is for small models and offers fewer tools. `auto` uses it for context
    windows of at most 32,000 tokens.
    """

    stdin_timeout_seconds: Annotated[float, Setting("HOLMES_STDIN_TIMEOUT_SECONDS"), Field(ge=0)] = 5
    """Time to wait for data on an open pipe, in seconds. After this time, the pipe is treated as empty."""

    @field_validator("scoped_namespaces", mode="before")
    @classmethod
    def _some(cls, value: object) -> object:
        if isinstance(value, str) and value.strip() and not value.strip(", "):
            message = "the list contains no namespace; remove the setting to read all namespaces"
            raise ValueError(message)
        return value

    @field_validator("scoped_namespaces")
    @classmethod
    def _names(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if not _NAMESPACE.fullmatch(name):
                message = f"{name!r} is not a valid namespace name"
                raise ValueError(message)
        return value


def _file_list(value: object) -> object:
    """Accept a single file that is not in a list."""
    return (value,) if isinstance(value, (str, Path)) else value


class ToolSettings(SettingsGroup):
    toolsets: Annotated[dict[str, JsonValue], Setting(key="toolsets")] = Field(default_factory=dict)
    """Toolsets by name, to enable, disable, configure or define them."""

    mcp_servers: Annotated[dict[str, JsonValue], Setting(key="mcp_servers")] = Field(default_factory=dict)
    """MCP servers by name, whose tools Holmes offers to the model."""

    custom_toolsets: Annotated[
        tuple[Path, ...],
        BeforeValidator(_file_list),
        Setting(key="custom_toolsets", option="--custom-toolsets", adds=True),
    ] = ()
    """Files with additional toolsets. The option may be repeated. It adds files to those in the config file."""

    prometheus_url: Annotated[str | None, Setting("PROMETHEUS_URL"), Field(min_length=1)] = None
    """URL of a Prometheus for the toolset `prometheus/metrics`. The `config` of the toolset overrides it."""

    discover_sources: Annotated[bool, Setting("HOLMES_DISCOVER_SOURCES")] = True
    """Search the cluster for monitoring systems if their toolsets are not configured. Inside the cluster, a toolset
    reads the only system that is found, without a login. Elsewhere, `holmes toolset list` names what is found.
    """

    redaction: Annotated[bool, Setting("HOLMES_REDACTION")] = True
    """Mask secrets in all tool results before they are stored, summarised or sent."""

    memory_limit_megabytes: Annotated[int, Setting("TOOL_MEMORY_LIMIT_MB"), Field(gt=0)] = 800
    """Memory limit of a tool process, in MB."""

    prerequisite_timeout_seconds: Annotated[float, Setting("HOLMES_TOOLSET_PREREQ_TIMEOUT_SECONDS"), Field(gt=0)] = 20
    """Total time limit for checking the prerequisites of all toolsets, in seconds."""

    toolset_retry_seconds: Annotated[float, Setting("HOLMES_TOOLSET_RETRY_SECONDS"), Field(gt=0)] = 30
    """Time until `holmes serve` checks failed toolsets again, in seconds. The time doubles after each failure, up to 20
    times this value. Working toolsets are checked again after that maximum time.
    """

    kubernetes_logs_timeout_seconds: Annotated[
        float, Setting("KUBERNETES_LOGS_TIMEOUT_SECONDS"), Field(gt=0, le=3_600)
    ] = 60
    """Time limit for reading the logs of one pod or workload, in seconds."""

    logs_default_tail_lines: Annotated[int, Setting("HOLMES_LOGS_DEFAULT_TAIL_LINES"), Field(ge=1, le=200_000)] = 500
    """Number of newest log lines to read from each container, unless the model requests another number."""

    logs_max_tail_lines: Annotated[int, Setting("HOLMES_LOGS_MAX_TAIL_LINES"), Field(ge=1, le=200_000)] = 5_000
    """Maximum number of log lines that the model can request from each container."""


class StorageSettings(SettingsGroup):
    results_enabled: Annotated[bool, Setting("HOLMES_TOOL_RESULT_STORAGE_ENABLED")] = True
    """Store tool results on disk. If false, results that are too large for the conversation are discarded, and the
    model must send a narrower query.
    """

    results_path: Annotated[Path, Setting("HOLMES_TOOL_RESULT_STORAGE_PATH", aliases=("context.store_dir",))] = Path(
        "~/.holmes/results"
    )
    """Folder of stored tool results."""

    results_retention_days: Annotated[float, Setting("HOLMES_TOOL_RESULT_RETENTION_DAYS"), Field(gt=0)] = 30
    """Number of days after which stored tool results are deleted."""

    results_quota_megabytes: Annotated[int, Setting("HOLMES_TOOL_RESULT_QUOTA_MEGABYTES"), Field(gt=0)] = 2_000
    """Maximum total size of all stored tool results, in MB. The oldest results are deleted first."""

    conversations_path: Annotated[Path, Setting("HOLMES_CONVERSATIONS_PATH")] = Path("~/.holmes/conversations")
    """Folder of stored conversations, for `holmes ask --continue`."""

    conversation_retention_days: Annotated[float, Setting("HOLMES_CONVERSATION_RETENTION_DAYS"), Field(gt=0)] = 30
    """Number of days after which stored conversations are deleted."""

    conversation_limit: Annotated[int, Setting("HOLMES_CONVERSATION_LIMIT"), Field(ge=1)] = 200
    """Maximum number of stored conversations. The oldest conversations are deleted first."""

    cache_path: Annotated[Path, Setting("HOLMES_CACHE_PATH")] = Path("~/.holmes/cache")
    """Folder of the toolset status cache. Its entries expire after one hour. The folder is safe to delete."""

    mcp_tokens_path: Annotated[Path, Setting("HOLMES_MCP_TOKENS_PATH")] = Path("~/.holmes/mcp_tokens")
    """Folder of the OAuth tokens of MCP servers, from `holmes toolset login`. Keep it private."""

    prompt_history_file: Annotated[Path, Setting("HOLMES_PROMPT_HISTORY_FILE")] = Path("~/.holmes/history")
    """File that stores the history of the interactive prompt."""
