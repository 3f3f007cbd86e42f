"""Draws `ask.svg`, the terminal picture of the README, from a real run: `python docs/images/terminal.py --write`.

`--check` runs the same command and fails when the picture is outdated. Durations differ from run to run and are not
compared.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from io import StringIO
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.markdown import Markdown
from rich.text import Text

PICTURE: Final = Path(__file__).with_name("ask.svg")
QUESTION: Final = "why is checkout failing in namespace shop?"
EVIDENCE_SHOWN: Final = 5
_COLUMNS: Final = 108
_DURATION: Final = re.compile(r"\d+\.\d s")
# Rich's own format loads its font from another host; this one uses the fonts of the reader.
_FORMAT: Final = """\
<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font: {char_height}px Menlo, Consolas, "DejaVu Sans Mono", monospace; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
    <rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
            </clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def picture() -> str:
    """Return the picture of a run against the demo cluster, as SVG."""
    answer, progress = _run()
    console = Console(record=True, width=_COLUMNS, file=StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text(f'$ holmes ask -n --demo "{QUESTION}"', style="bold"))
    for line in progress:
        console.print(Text(line, style="green" if line.startswith("✓") else "dim"))
    console.print(Markdown(_beginning(answer)))
    console.print(Text("…", style="dim"))
    drawn = console.export_svg(title="holmes", unique_id="terminal", code_format=_FORMAT)
    return re.sub(r"[ \t]+$", "", drawn, flags=re.MULTILINE).strip() + "\n"


def without_durations(drawn: str) -> str:
    """Return the picture without its durations, which differ from run to run."""
    return _DURATION.sub("0.0 s", drawn.replace("&#160;", " "))


def _run() -> tuple[str, list[str]]:
    """Return the answer, and the line of each finished tool call in the order in which the calls began."""
    with tempfile.TemporaryDirectory() as home:
        done = subprocess.run(
            [sys.executable, "-m", "holmes", "ask", "--no-interactive", "--demo", QUESTION],
            env={"PATH": os.pathsep.join((str(Path(sys.executable).parent), os.defpath)), "HOME": home},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
        )
    lines = done.stderr.splitlines()
    begun = [line.removeprefix("→ ") for line in lines if line.startswith("→ ")]
    finished = {line.removeprefix("✓ ").partition(" · ")[0]: line for line in lines if line.startswith("✓ ")}
    return done.stdout, [finished[title] for title in begun]


def _beginning(answer: str) -> str:
    """Return the root cause and the first lines of evidence."""
    before, heading, after = answer.partition("**Evidence**\n")
    return before + heading + "\n".join(after.splitlines()[:EVIDENCE_SHOWN])


def main(mode: str) -> None:
    """Write the picture, or compare it with a new run."""
    drawn = picture()
    if mode == "--write":
        PICTURE.write_text(drawn, encoding="utf-8")
    elif without_durations(drawn) != without_durations(PICTURE.read_text(encoding="utf-8")):
        sys.exit(f"{PICTURE.name} is outdated: run python docs/images/terminal.py --write")


if __name__ == "__main__":
    main(sys.argv[1])
