"""What the model reads about toolsets that it cannot use: one line for each reason, nothing for absent software."""

from __future__ import annotations

from holmes.app.toolsets import OpenToolsets
from holmes.toolsets.readiness import Readiness
from holmes.toolsets.registry import ToolsetState, ToolsetStatus


def status(name: str, state: ToolsetState, reason: str) -> ToolsetStatus:
    return ToolsetStatus(name=name, state=state, reason=reason)


def test_one_line_names_all_toolsets_with_the_same_reason_and_absent_ones_cost_nothing() -> None:
    statuses = (
        status("argocd/core", "failed", "the cluster does not respond"),
        status("docker/core", "absent", "'docker' is not installed"),
        status("flux/core", "failed", "the cluster does not respond"),
        status("helm/core", "failed", "'helm' is not installed"),
        status("off", "disabled", "disabled in the configuration"),
    )
    opened = OpenToolsets(readiness=Readiness(ready=(), statuses=statuses), warnings=(), lint_warnings=(), own_files=())
    assert opened.unavailable == (
        "argocd/core, flux/core: the cluster does not respond",
        "helm/core: 'helm' is not installed",
    )
