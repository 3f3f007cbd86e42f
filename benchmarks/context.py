"""Everything that is promised about context management, side by side: `python benchmarks/context.py`.

Runs the four benchmarks one after the other, each as its own process so that none disturbs the others' figures, and
prints what they print: counting, storing, previews, and the named policies. Exits with 1 when any promise is broken.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

BENCHMARKS = (
    ("counting.py", "What knowing the size of the conversation costs"),
    ("storing.py", "What storing large results costs"),
    ("previews.py", "How often a preview shows the fault"),
    ("policies.py", "What each policy costs and remembers over 150 rounds"),
)
TIMEOUT_SECONDS = 600


def run(file_name: str) -> bool:
    """Whether this benchmark keeps its promises. Its output goes where ours goes."""
    command = [sys.executable, str(Path(__file__).resolve().parent / file_name)]
    try:
        return subprocess.run(command, check=False, timeout=TIMEOUT_SECONDS).returncode == 0
    except subprocess.TimeoutExpired:
        print(f"no result within {TIMEOUT_SECONDS} s")
        return False


def main() -> int:
    """Print all tables, then one line for each benchmark; 1 when a promise is broken."""
    verdicts: list[str] = []
    for file_name, title in BENCHMARKS:
        print(f"\n== {title} ({file_name})", flush=True)
        started = time.monotonic()
        kept = run(file_name)
        verdicts.append(f"{file_name:<12} {'kept' if kept else 'BROKEN':<7} {time.monotonic() - started:5.0f} s")
    print("\n== All promises", *verdicts, sep="\n")
    return 0 if not any("BROKEN" in verdict for verdict in verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
