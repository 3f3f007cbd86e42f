"""How fast secrets are masked: `python benchmarks/redaction.py [--against FOLDER]`.

Masks texts of 20 MB (a log, the same in ASCII, a list of pods) in a process of their own, and prints megabytes per
second and the memory at the peak beyond the text. With the folder of another checkout both take turns, seven times, and
the ratio of the medians is printed too. A text dense in secrets and encodings is masked once, for its memory. Exits
with 1 when a promise is broken.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
SIZE_BYTES = 20_000_000
ROUNDS = 7
MAX_RATIO = 1.15
MAX_MEGABYTES = 100.0
TEXTS = ("log", "ascii log", "pods")
DENSE = "dense"

MEASURE = """
import sys, time
from base64 import b64encode
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from benchmarks.storing import json_text, log_text, peak_megabytes
from holmes.redaction.redactor import Redactor

kind, size = sys.argv[2], int(sys.argv[3])
DENSE_LINE = (
    "2026-11-22T01:20:50Z worker-{0} password=Abc{0}xyz token%3D{0}Qw7Zx9Lm2Kp4 {1} \\\\u0022api_key\\\\u0022:"
    "\\\\u0022k{0}Lm2Kp4Qw7Zx9\\\\u0022\\n"
)

def dense_text(size):
    lines = (DENSE_LINE.format(n, b64encode(b"DB_PASSWORD=x%d" % n).decode()) for n in range(size // 140))
    return "".join(lines)[:size]

text = {"pods": json_text, "dense": dense_text}.get(kind, log_text)(size)
if kind == "ascii log":
    text = text.replace("\\u2026", "..")
redactor = Redactor(b"a key of this benchmark, 32 bytes")
redactor.redact("password=warm up")
Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
before, started = peak_megabytes(), time.process_time()
redactor.redact(text)
print(time.process_time() - started, peak_megabytes() - before)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """CPU seconds that one text took, and megabytes at the peak."""

    seconds: float
    megabytes: float


def measured(checkout: Path, kind: str) -> Figures:
    """One run of the code in `checkout`."""
    command = [sys.executable, "-c", MEASURE, str(checkout), kind, str(SIZE_BYTES)]
    output = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300, cwd=checkout).stdout
    seconds, megabytes = map(float, output.split())
    return Figures(seconds=seconds, megabytes=megabytes)


def median(runs: list[Figures]) -> Figures:
    """The median of each figure."""
    return Figures(
        seconds=statistics.median(run.seconds for run in runs),
        megabytes=statistics.median(run.megabytes for run in runs),
    )


def compared(kind: str, other: Path | None) -> bool:
    """Print the line of one text; whether it keeps the promises."""
    own: list[Figures] = []
    others: list[Figures] = []
    for _ in range(ROUNDS if other else 1):
        if other:
            others.append(measured(other, kind))
        own.append(measured(HERE, kind))
    now = median(own)
    line = f"{kind:<10} {SIZE_BYTES / 1e6 / now.seconds:7.1f} MB/s  {now.megabytes:6.1f} MB at the peak"
    if not other:
        print(line)
        return now.megabytes <= MAX_MEGABYTES
    before = median(others)
    ratio = now.seconds / before.seconds
    print(f"{line}  before {SIZE_BYTES / 1e6 / before.seconds:7.1f} MB/s  ratio {ratio:.2f} (at most {MAX_RATIO})")
    return ratio <= MAX_RATIO and now.megabytes <= MAX_MEGABYTES


def main() -> int:
    """Print the table; 1 when a promise is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", type=Path, help="folder of another checkout to compare with")
    other = parser.parse_args().against
    kept = [compared(kind, other.resolve() if other else None) for kind in TEXTS]
    kept.append(compared(DENSE, None))
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
