"""Tables as `kubectl get` and `kubectl top` print them, with one odd row."""

from __future__ import annotations

import random

from benchmarks.preview_corpora.cases import Made
from benchmarks.preview_corpora.words import APPS, NAMESPACES, pod_name, random_address, random_hex


def aligned(header: list[str], rows: list[list[str]]) -> str:
    widths = [max(len(row[index]) for row in [header, *rows]) for index in range(len(header))]
    lines = [
        "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in [header, *rows]
    ]
    return "\n".join(lines) + "\n"


def make_table(chance: random.Random) -> Made:
    maker = chance.choice(
        (_pods_table, _pods_table, _nodes_table, _deployments_table, _claims_table, _top_table, _jobs_table)
    )
    return maker(chance)


def _age(chance: random.Random) -> str:
    return chance.choice(
        (
            f"{chance.randrange(2, 60)}d",
            f"{chance.randrange(3, 24)}h",
            f"{chance.randrange(2, 9)}d{chance.randrange(23)}h",
        )
    )


def _pods_table(chance: random.Random) -> Made:
    header = [
        "NAMESPACE",
        "NAME",
        "READY",
        "STATUS",
        "RESTARTS",
        "AGE",
        "IP",
        "NODE",
        "NOMINATED NODE",
        "READINESS GATES",
    ]
    rows = []
    for _ in range(chance.choice((120, 300, 500, 900))):
        app = chance.choice(APPS)
        finished = chance.random() < 0.05
        containers = chance.choice((1, 1, 1, 2))
        restarts = f"{chance.randrange(1, 4)} ({chance.randrange(2, 40)}d ago)" if chance.random() < 0.06 else "0"
        rows.append(
            [
                chance.choice(NAMESPACES), pod_name(chance, app),
                f"0/{containers}" if finished else f"{containers}/{containers}",
                "Completed" if finished else "Running", restarts, _age(chance), random_address(chance),
                f"node-{chance.randrange(30):02d}", "<none>", "<none>",
            ]
        )  # fmt: skip
    row = chance.choice(rows[len(rows) // 5 : len(rows) * 4 // 5])
    row[2], row[4] = "1/1", "0"
    states = ("ImagePullBackOff", "CrashLoopBackOff", "CreateContainerConfigError", "OOMKilled", "Pending", "Evicted",
              "Init:CrashLoopBackOff", "ContainerStatusUnknown", "Terminating", "InvalidImageName")  # fmt: skip
    kind = chance.randrange(4)
    if kind == 0:
        row[2], row[3] = "0/1", "Running"
        return "running but not ready", aligned(header, rows), (row[1],)
    if kind == 1:
        row[3], row[4] = "Running", f"{chance.randrange(180, 900)} (4m ago)"
        return "many restarts", aligned(header, rows), (row[1], row[4].split(" ", 1)[0])
    row[2], row[3] = "0/1", chance.choice(states)
    return row[3], aligned(header, rows), (row[1], row[3])


def _nodes_table(chance: random.Random) -> Made:
    header = [
        "NAME",
        "STATUS",
        "ROLES",
        "AGE",
        "VERSION",
        "INTERNAL-IP",
        "OS-IMAGE",
        "KERNEL-VERSION",
        "CONTAINER-RUNTIME",
    ]
    rows = [
        [f"node-{number:03d}", "Ready", "<none>" if number > 2 else "control-plane", f"{chance.randrange(90, 100)}d",
         "v1.34.1", random_address(chance), "Debian GNU/Linux 12", "6.1.0-28-amd64", "containerd://2.1.4"]
        for number in range(chance.choice((60, 150, 400)))
    ]  # fmt: skip
    row = chance.choice(rows[10:-10])
    place, value = chance.choice(
        (
            (1, "NotReady"),
            (1, "Ready,SchedulingDisabled"),
            (4, "v1.31.9"),
            (7, "6.1.0-13-amd64"),
            (8, "containerd://1.6.20"),
        )
    )
    row[place] = value
    return f"{header[place]} {value}", aligned(header, rows), (row[0], value)


def _deployments_table(chance: random.Random) -> Made:
    header = ["NAMESPACE", "NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE", "CONTAINERS", "IMAGES", "SELECTOR"]
    release = f"2.{chance.randrange(20)}.{chance.randrange(9)}"
    rows = []
    for namespace in NAMESPACES:
        for app in chance.sample(APPS, chance.randrange(10, 26)):
            count = chance.choice((1, 2, 3, 5))
            image = f"registry.shop.example/{app}:{release}"
            rows.append(
                [namespace, app, f"{count}/{count}", str(count), str(count), _age(chance), app, image, f"app={app}"]
            )
    row = chance.choice(rows[8:-8])
    if chance.random() < 0.5:
        tag = chance.choice(("latest", "2.0.0-rc1", "1.9.7", f"{release}-debug"))
        row[7] = f"registry.shop.example/{row[1]}:{tag}"
        return f"image tag {tag}", aligned(header, rows), (f"{row[0]} ", row[7])
    row[2], row[4] = f"0/{row[3]}", "0"
    return "nothing available", aligned(header, rows), (row[1], row[2])


def _claims_table(chance: random.Random) -> Made:
    header = ["NAMESPACE", "NAME", "STATUS", "VOLUME", "CAPACITY", "ACCESS MODES", "STORAGECLASS", "AGE"]
    rows = [
        [chance.choice(NAMESPACES), f"data-{chance.choice(APPS)}-{number}", "Bound",
         f"pvc-{random_hex(chance, 8)}-{random_hex(chance, 12)}",
         chance.choice(("10Gi", "20Gi", "100Gi")), "RWO", "fast-ssd", _age(chance)]
        for number in range(chance.choice((80, 250)))
    ]  # fmt: skip
    row = chance.choice(rows[10:-10])
    if chance.random() < 0.6:
        row[2], row[3], row[4], row[5] = "Pending", "", "", ""
        return "claim pending", aligned(header, rows), (row[1], "Pending")
    row[6] = "fast-sdd"
    return "storage class with a typo", aligned(header, rows), (row[1], "fast-sdd")


def _top_table(chance: random.Random) -> Made:
    header = ["NAMESPACE", "NAME", "CPU(cores)", "MEMORY(bytes)"]
    rows = [
        [
            chance.choice(NAMESPACES),
            pod_name(chance, chance.choice(APPS)),
            f"{chance.randrange(1, 250)}m",
            f"{chance.randrange(20, 900)}Mi",
        ]
        for _ in range(chance.choice((150, 400, 800)))
    ]
    row = chance.choice(rows[10:-10])
    place, value = chance.choice(((2, f"{chance.randrange(9000, 16000)}m"), (3, f"{chance.randrange(14000, 40000)}Mi")))
    row[place] = value
    return f"{header[place]} {value}", aligned(header, rows), (row[1], value)


def _jobs_table(chance: random.Random) -> Made:
    header = ["NAMESPACE", "NAME", "STATUS", "COMPLETIONS", "DURATION", "AGE"]
    rows = [
        [
            chance.choice(NAMESPACES),
            f"{chance.choice(APPS)}-{29_000_000 + number}",
            "Complete",
            "1/1",
            f"{chance.randrange(8, 95)}s",
            _age(chance),
        ]
        for number in range(chance.choice((100, 300)))
    ]
    row = chance.choice(rows[10:-10])
    row[2], row[3], row[4] = chance.choice(
        (("Failed", "0/1", "6m1s"), ("Running", "0/1", "31h"), ("Suspended", "0/1", ""))
    )
    return f"job {row[2]}", aligned(header, rows), (row[1], row[2])
