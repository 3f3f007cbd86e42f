"""What `holmes serve` costs at rest and at work: `python benchmarks/serving.py [INVESTIGATIONS]`.

Exits with 1 when a promise is broken: at most 250 MB at rest and 450 MB after 20 investigations, and the page and
`/healthz` within 100 ms while these run.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.serving_load import measure_server

MAX_IDLE_MEGABYTES = 250
MAX_AFTER_MEGABYTES = 450
MAX_SECONDS = 0.1


def percentile(seconds: list[float], share: float) -> float:
    return sorted(seconds)[min(len(seconds) - 1, int(len(seconds) * share))]


def main() -> None:
    investigations = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    with tempfile.TemporaryDirectory() as folder:
        served = measure_server(Path(folder), investigations)
    print(f"ready after {served.start_seconds:.1f} s; at rest {served.idle_megabytes:.0f} MB")
    print(
        f"{investigations} investigations in {served.seconds:.1f} s, {served.running_at_once} at once; "
        f"then {served.after_megabytes:.0f} MB"
    )
    print(f"slowest page during the first investigation: {1000 * served.first_page_seconds:.0f} ms")
    broken = []
    for name, seconds in (("page", served.page_seconds), ("/healthz", served.health_seconds)):
        print(
            f"{name}: {len(seconds)} answers, median {1000 * percentile(seconds, 0.5):.0f} ms, "
            f"95% within {1000 * percentile(seconds, 0.95):.0f} ms, slowest {1000 * max(seconds):.0f} ms"
        )
        if percentile(seconds, 0.95) > MAX_SECONDS:
            broken.append(f"{name} takes more than {1000 * MAX_SECONDS:.0f} ms in more than 5% of the answers")
    if served.idle_megabytes > MAX_IDLE_MEGABYTES:
        broken.append(f"{served.idle_megabytes:.0f} MB at rest")
    if served.after_megabytes > MAX_AFTER_MEGABYTES:
        broken.append(f"{served.after_megabytes:.0f} MB after {investigations} investigations")
    for line in broken:
        print(f"NOT MET: {line}")
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
