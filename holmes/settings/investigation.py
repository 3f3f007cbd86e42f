"""What an investigation is about and how long it may go on."""

from __future__ import annotations

import re
from pathlib import Path  # noqa: TC003  pydantic reads it at run time
from typing import Annotated

from pydantic import Field, field_validator

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
