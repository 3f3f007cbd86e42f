"""Assigns alerts to the configured clusters by a label, so that no alert is investigated in another cluster.

Alerts that differ only in their cluster never share a fingerprint or an incident.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from holmes.triage.alert_subjects import bounded_key, incident_key
from holmes.values.texts import shortened

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holmes.investigations.records.values import Alert, AlertGroup


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertClusters:
    """The configured clusters. Without names, alerts are not assigned, and all of them are investigated.

    `label` names the cluster of an alert. An alert without the label belongs to `default`. If `only` is set, alerts of
    other clusters are not investigated.
    """

    names: tuple[str, ...] = ()
    label: str = "cluster"
    default: str | None = None
    only: str | None = None

    def assigned(self, group: AlertGroup) -> AlertGroup:
        """Return the group with the cluster of each alert, which becomes a part of the fingerprint."""
        if not self.names:
            return group
        return replace(group, alerts=tuple(map(self._assigned, group.alerts)))

    def refusal(self, cluster: str | None) -> str | None:
        """Return why alerts of `cluster` are not investigated, or None if they are."""
        if not self.names or (cluster in self.names and self.only in {None, cluster}):
            return None
        known = ", ".join(self.names)
        if cluster is None:
            return f"The alert has no label {self.label!r} that names a cluster, and default_cluster is not set."
        if cluster not in self.names:
            named = shortened(cluster, _SHOWN_CHARACTERS)
            return f"The label {self.label!r} names the unknown cluster {named!r}; configured clusters: {known}."
        return f"The alert is about the cluster {cluster!r}, and this Holmes reads only {self.only!r}."

    def _assigned(self, alert: Alert) -> Alert:
        cluster = self._named(alert.labels)
        if cluster is None:
            return alert
        fingerprint = f"{cluster}/{alert.fingerprint}"
        if cluster not in self.names or len(fingerprint) > _MOST_CHARACTERS:
            fingerprint = hashlib.sha256(f"{cluster!r} {alert.fingerprint}".encode()).hexdigest()
        return replace(alert, cluster=cluster, fingerprint=fingerprint)

    def _named(self, labels: Mapping[str, str]) -> str | None:
        return labels.get(self.label, "").strip() or self.default


_SHOWN_CHARACTERS = 80
_MOST_CHARACTERS = 200


def incident_key_of(group_key: str, alert: Alert) -> str:
    """Return the key of an alert's incident. Alerts of different clusters have different keys."""
    key = incident_key(group_key, alert.labels)
    return key if alert.cluster is None else bounded_key(f"{alert.cluster!r} {key}")
