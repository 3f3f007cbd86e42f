"""Returns the likely fix of an incident as steps. The commands are never run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holmes.triage.markdown import fix_commands
from holmes.values.first_look import FixStep

if TYPE_CHECKING:
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.values.findings import Incident


def fix_steps(incident: Incident, state: ClusterState) -> tuple[FixStep, ...]:
    """Return the steps of the likely fix, or an empty tuple if the fix is not known."""
    del state
    return tuple(FixStep(command=command) for command in fix_commands(incident))
