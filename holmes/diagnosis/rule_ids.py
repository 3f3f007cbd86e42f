"""Names the rules by whose ids other code decides. A decision reads these names, never the sentences of a finding."""

from __future__ import annotations

from typing import Final

GENERIC_RULES: Final = frozenset({"P01", "P03", "P08a", "P09", "P10", "W01", "W02", "N-S02"})
"""Rules that report a failure without its cause. Their findings rank last within the same role and severity."""
DECISIVE_RULES: Final = frozenset({"W06c"})
"""Rules about what keeps a fault alive that was corrected already. The fault itself no longer has to be corrected."""
FORESEEN_RULES: Final = frozenset({"P07"})
"""Rules about what new pods will lack. They do not explain the faults of pods that exist."""
CRASHES: Final = frozenset({"P01", "P03"})
"""Rules that report how a container ended, and know of its end only the exit code and the last lines of its log."""
AUTOSCALING: Final = frozenset({"H01", "H01b", "H02", "H02b", "H03", "H04"})
"""Rules about the number of replicas that an autoscaler sets."""
STUCK_ROLLOUT: Final = "W01"
"""The rule that finds rollouts which do not finish."""
OUTDATED_PODS: Final = "W13"
"""The rule that finds pods which are older than their configuration."""
CRON_JOB_ACTS: Final = "W14"
"""The rule that finds CronJobs which change a workload."""
UNHANDLED_INGRESS: Final = "I01"
"""The rule that finds Ingresses which no controller handles because of their class."""
SUSPENDED: Final = "G03"
"""The rule that finds custom resources which the user suspended."""
UPDATE_ON_DELETE: Final = "W06b"
"""The rule that finds pods which keep their old template until they are deleted."""
