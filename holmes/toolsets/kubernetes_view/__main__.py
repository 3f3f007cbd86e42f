"""Runs one view that uses jq or has a large input, in a separate process that can be stopped and has a memory limit.

Reads one request as JSON from standard input and writes the view to standard output. The request contains the key for
placeholders. The key is empty if redaction is off, and null if the text is already masked.
"""

from __future__ import annotations

import json
import os
import re
import sys
from typing import TYPE_CHECKING

from holmes.toolsets.kubernetes_view import ViewError, ViewRequest

if TYPE_CHECKING:
    from holmes.toolsets.kubernetes_view import Json


def show_jq(document: str, expression: str) -> str:
    """Run a jq expression and return one result per line, with strings unquoted. Raises `ViewError`.

    Clears the environment variables of this process, because libjq reads them.
    """
    import jq

    program = expression.replace("\r", "\n")
    _refuse_files(program)
    os.environ.clear()
    try:
        return "".join(f"{_plain(result)}\n" for result in jq.compile(program).input_text(document))
    except ValueError as error:
        raise ViewError(f"jq: {error}") from error


def _refuse_files(program: str) -> None:
    """Reject modules, because jq can load their files from any folder that the expression specifies."""
    if "\\\n" in program or "\x00" in program:
        raise ViewError("jq: a line of the expression cannot end with a backslash")
    code = re.sub(r"^(\s|#[^\n]*)+", "", program)
    if re.match(r"(module|import|include)\b", code) or re.search(r"\b(modulemeta|get_search_list)\b", code):
        raise ViewError("jq: modules are not available: write the expression without module, import and include")


def _plain(result: Json) -> str:
    return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)


def _view(request: ViewRequest, key: str) -> str:
    # Imported only here, because the import is slow and the input of jq is usually masked already.
    from holmes.redaction.redactor import Redactor
    from holmes.toolsets.kubernetes_view.forms import view

    return view(request, Redactor(bytes.fromhex(key)) if key else None)


def main() -> int:
    """Run the view, and return exit code 0 for success or 1 for an invalid input or expression."""
    fields = json.load(sys.stdin.buffer)
    key = fields.pop("key")
    request = ViewRequest(**fields)
    try:
        shown = request.text if key is None else _view(request, key)
        if request.form == "jq":
            shown = show_jq(shown, request.argument)
    except (ViewError, RecursionError) as error:
        sys.stderr.write(f"{str(error) or type(error).__name__}\n")
        return 1
    sys.stdout.buffer.write(shown.encode("utf-8", "replace"))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
