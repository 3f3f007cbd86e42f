"""Settings for several clusters: their names, how each is reached, and which is used without a choice."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from holmes.settings.setting import Setting, SettingsGroup

ClusterName = Annotated[str, Field(pattern=r"^[A-Za-z0-9]([A-Za-z0-9_.\-]{0,61}[A-Za-z0-9])?$")]


class ClusterSettings(BaseModel):
    """How one cluster is reached."""

    kubeconfig: Path | None = None
    """Path of the kubeconfig file. Default: the general kubeconfig."""
    context: str | None = Field(default=None, min_length=1)
    """Name of the kubeconfig context. Default: the current context of the file."""
    in_cluster: bool = False
    """Use the service account of the pod in which Holmes runs."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    @model_validator(mode="after")
    def _is_reached_in_one_way(self) -> Self:
        if self.in_cluster == bool(self.kubeconfig or self.context):
            message = "expected 'kubeconfig' and/or 'context', or 'in_cluster: true'"
            raise ValueError(message)
        return self

    def kubeconfig_or(self, general: Path | None) -> Path | None:
        """Return the kubeconfig file. For a service account, it is the empty file, so that no other file is read."""
        return Path(os.devnull) if self.in_cluster else self.kubeconfig or general


class ClustersSettings(SettingsGroup):
    clusters: Annotated[dict[ClusterName, ClusterSettings], Setting(key="clusters")] = Field(default_factory=dict)
    """Clusters by name, each with `kubeconfig` and/or `context`, or with `in_cluster: true`. An investigation reads one
    of them.
    """

    default_cluster: Annotated[str | None, Setting("HOLMES_CLUSTER", key="default_cluster"), Field(min_length=1)] = None
    """Name of the cluster for questions without `--cluster`, and for alerts without a cluster label. Default: the only
    configured cluster.
    """
