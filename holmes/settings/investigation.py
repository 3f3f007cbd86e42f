"""What an investigation is about and how long it may go on. Mapped by `holmes.app` onto the loop and the prompts."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003  pydantic reads it at run time
from typing import Annotated

from pydantic import Field

from holmes.settings.setting import Setting, SettingsGroup


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

    system_prompt_additions: Annotated[
        str | None, Setting(key="system_prompt_additions", option="--system-prompt-additions")
    ] = None
    """Text that is added to the instructions of the model."""

    stdin_timeout_seconds: Annotated[float, Setting("HOLMES_STDIN_TIMEOUT_SECONDS"), Field(ge=0)] = 5
    """Seconds to wait for data on an open pipe before it is taken as empty."""
