"""Settings of one question: the cluster, the limit, the tools and the files that Holmes keeps."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field, JsonValue, field_validator

from holmes.settings.setting import CommaSeparated, Setting, SettingsGroup

_NAMESPACE = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


class InvestigationSettings(SettingsGroup):
    """The investigation."""

    max_steps: Annotated[int, Setting("MAX_STEPS", option="--max-steps"), Field(ge=1)] = 100
    """The most replies of the model for one question; the last one must be the answer."""

    cluster_name: Annotated[str | None, Setting("CLUSTER_NAME")] = None
    """What the model is told the cluster is called."""

    kubeconfig: Annotated[Path | None, Setting(key="kubeconfig", option="--kubeconfig")] = None
    """The kubeconfig file. Unset: what `KUBECONFIG` says, `~/.kube/config`, or the service account of the pod."""

    kube_context: Annotated[str | None, Setting(key="kube_context", option="--context"), Field(min_length=1)] = None
    """The kubeconfig context. Unset: the current one."""

    namespace: Annotated[str | None, Setting(key="namespace", option="--namespace"), Field(min_length=1)] = None
    """The namespace the question is about. Unset: the model finds it."""

    scoped_namespaces: Annotated[CommaSeparated, Setting("SCOPED_NAMESPACES")] = ()
    """The only namespaces that Holmes reads, comma-separated in the variable. Unset: all that the credentials allow."""

    system_prompt_additions: Annotated[
        str | None, Setting(key="system_prompt_additions", option="--system-prompt-additions")
    ] = None
    """Text that is added to the instructions of the model."""

    stdin_timeout_seconds: Annotated[float, Setting("HOLMES_STDIN_TIMEOUT_SECONDS"), Field(ge=0)] = 5
    """Seconds to wait for data on an open pipe before it is taken as empty."""

    @field_validator("scoped_namespaces", mode="before")
    @classmethod
    def _some(cls, value: object) -> object:
        if isinstance(value, str) and value.strip() and not value.strip(", "):
            message = "it names no namespace; leave it out to read all of them"
            raise ValueError(message)
        return value

    @field_validator("scoped_namespaces")
    @classmethod
    def _names(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if not _NAMESPACE.fullmatch(name):
                message = f"{name!r} is not a valid name of a namespace"
                raise ValueError(message)
        return value


def _file_list(value: object) -> object:
    """One file may be written without the list around it."""
    return (value,) if isinstance(value, (str, Path)) else value


class ToolSettings(SettingsGroup):
    """Tools."""

    toolsets: Annotated[dict[str, JsonValue], Setting(key="toolsets")] = Field(default_factory=dict)
    """Toolsets by name: switched on or off, configured, or defined here."""

    custom_toolsets: Annotated[
        tuple[Path, ...],
        BeforeValidator(_file_list),
        Setting(key="custom_toolsets", option="--custom-toolsets", adds=True),
    ] = ()
    """Files with more toolsets. The option may be repeated and adds to the files of the config file."""

    redaction: Annotated[bool, Setting("HOLMES_REDACTION")] = True
    """Whether secrets are masked in everything that tools return, before it is stored, summarised or sent."""

    memory_limit_megabytes: Annotated[int, Setting("TOOL_MEMORY_LIMIT_MB"), Field(gt=0)] = 800
    """The memory of one tool process, in MB."""

    prerequisite_timeout_seconds: Annotated[float, Setting("HOLMES_TOOLSET_PREREQ_TIMEOUT_SECONDS"), Field(gt=0)] = 20
    """Seconds that the checks of all toolsets may take together."""

    toolset_retry_seconds: Annotated[float, Setting("HOLMES_TOOLSET_RETRY_SECONDS"), Field(gt=0)] = 30
    """Seconds after which `holmes serve` checks toolsets that failed again. The pause doubles up to 20 times as long,
    which is also how often toolsets that work are checked.
    """

    kubernetes_logs_timeout_seconds: Annotated[
        float, Setting("KUBERNETES_LOGS_TIMEOUT_SECONDS"), Field(gt=0, le=3_600)
    ] = 60
    """Seconds that reading logs of one pod or workload may take."""

    logs_default_tail_lines: Annotated[int, Setting("HOLMES_LOGS_DEFAULT_TAIL_LINES"), Field(ge=1, le=200_000)] = 500
    """Newest lines of each container that reading logs shows when the model does not say how many."""

    logs_max_tail_lines: Annotated[int, Setting("HOLMES_LOGS_MAX_TAIL_LINES"), Field(ge=1, le=200_000)] = 5_000
    """Maximum number of lines of each container that the model may ask for."""


class StorageSettings(SettingsGroup):
    """Files that Holmes keeps."""

    results_enabled: Annotated[bool, Setting("HOLMES_TOOL_RESULT_STORAGE_ENABLED")] = True
    """Whether tool results are kept on disk. If not, those that are too large for the conversation are dropped and the
    model must ask for less.
    """

    results_path: Annotated[Path, Setting("HOLMES_TOOL_RESULT_STORAGE_PATH", aliases=("context.store_dir",))] = Path(
        "~/.holmes/results"
    )
    """The folder of stored tool results."""

    results_retention_days: Annotated[float, Setting("HOLMES_TOOL_RESULT_RETENTION_DAYS"), Field(gt=0)] = 30
    """Days after which a stored tool result is deleted."""

    results_quota_megabytes: Annotated[int, Setting("HOLMES_TOOL_RESULT_QUOTA_MEGABYTES"), Field(gt=0)] = 2_000
    """The most that stored tool results take on disk, in MB; the oldest are deleted first."""

    conversations_path: Annotated[Path, Setting("HOLMES_CONVERSATIONS_PATH")] = Path("~/.holmes/conversations")
    """The folder of conversations, for `holmes ask --continue`."""

    conversation_retention_days: Annotated[float, Setting("HOLMES_CONVERSATION_RETENTION_DAYS"), Field(gt=0)] = 30
    """Days after which a conversation is deleted."""

    conversation_limit: Annotated[int, Setting("HOLMES_CONVERSATION_LIMIT"), Field(ge=1)] = 200
    """How many conversations are kept; the oldest are deleted first."""

    cache_path: Annotated[Path, Setting("HOLMES_CACHE_PATH")] = Path("~/.holmes/cache")
    """The folder that remembers for an hour which toolsets work; it can be deleted at any time."""

    prompt_history_file: Annotated[Path, Setting("HOLMES_PROMPT_HISTORY_FILE")] = Path("~/.holmes/history")
    """What was typed at the interactive prompt."""
