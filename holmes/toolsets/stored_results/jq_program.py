"""Runs one jq expression over standard input: `python -I jq_program.py EXPRESSION SHOWN_BYTES SECONDS`.

Does not import Holmes. Writes one JSON object: the first results as text, the total number of results, and the error,
if any. Uses at most one gigabyte of memory and SECONDS of CPU time. An expression cannot read files, because modules
can be imported only at the start of a program, and this program starts with a bracket.
"""

from __future__ import annotations

import json
import resource
import sys

_MEMORY_BYTES = 1 << 30
_MOST_RESULTS = 1_000_000


def main(expression: str, shown_bytes: int, processor_seconds: int) -> None:
    """Write the JSON object to standard output."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (processor_seconds, processor_seconds + 1))
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    import jq  # import jq after the limits are set

    shown: list[str] = []
    total, left = 0, shown_bytes
    error: str | None = None
    try:
        program = jq.compile(f"({expression}\n)")
        for result in program.input_text(sys.stdin.buffer.read().decode("utf-8", "replace")):
            total += 1
            if left > 0:
                text = _plain(result, left)
                shown.append(text)
                left -= len(text.encode("utf-8", "replace")) + 1
            if total == _MOST_RESULTS:
                break
    except ValueError as failure:
        error = " ".join(str(failure).split())[:500]
    json.dump({"results": shown, "total": total, "error": error, "at_least": total == _MOST_RESULTS}, sys.stdout)


def _plain(result: object, most_characters: int) -> str:
    """Return strings without quotes and other values as JSON. A very long text is truncated and marked."""
    text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
    if len(text) <= most_characters:
        return text
    return f"{text[:most_characters]} [... {len(text) - most_characters:,} more characters of this result]"


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
