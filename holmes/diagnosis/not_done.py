"""Rows of the catalogue that no rule recognises, with the reason. Written into `docs/rules.md` by `table`."""

from __future__ import annotations

from typing import Final

NOT_DONE: Final[dict[str, str]] = {
    "I01": "recognised, but not that no controller runs for a class: classes and controllers cannot be mapped to pods",
    "I03": "recognised, but not a wrong type or missing keys of the Secret, nor an expired certificate: only names of "
    "Secrets are read",
    "N-S07": "recognised, but not externalTrafficPolicy Local: who calls from outside of the cluster is unknown",
    "N-S08": "recognised, but not sessionAffinity and publishNotReadyAddresses, which are no faults in themselves",
    "N06": "recognised between nodes, but not against the API server's version, nor kernels",
    "N08": "recognised for promised memory; real usage needs the metrics API",
    "P19": "not a rule of its own: every other rule quotes the decisive line of a log that it asked for",
    "V04": "recognised, but not a missing CSIDriver: a provisioner is only known by the names that pods carry",
    "V11": "recognised when a log says so; how full a volume is only the kubelet's statistics tell",
    "W06": "recognised for partitions and OnDelete; maxSurge 0 with maxUnavailable 0 is refused by the API server, and "
    "Recreate with a ReadWriteOnce volume is how it should be",
    "W07": "recognised for images and resources, not for environment variables, which injectors add everywhere",
    "W11": "recognised, but overdue runs only by a bound for plain schedules, not by a calendar",
    "W12": "recognised, but not the adoption of ReplicaSets",
    "G03": "not a rule of its own: every incident says what was changed shortly before",
}
