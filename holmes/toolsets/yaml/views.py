"""Applies the transformer `kubernetes_view` to the output of a command.

The view runs in this process, outside the event loop. Views of large outputs, and views with jq, which may never end,
run in a separate process within the limits of the tool. Incomplete output is not shown, because secrets are recognised
by the words around them.
"""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Final, cast

from holmes.toolsets.kubernetes_view import FORMS, ViewError, ViewForm, ViewRequest
from holmes.toolsets.kubernetes_view.forms import view
from holmes.toolsets.kubernetes_view.secrets import is_harmless_table, masked_text
from holmes.toolsets.process import run_process
from holmes.values.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from holmes.redaction.redactor import Redactor
    from holmes.toolsets.process import ProcessLimits, ProcessOutcome
    from holmes.toolsets.yaml.definition import ViewTransformer
    from holmes.values.environment import Environment
    from holmes.values.json_types import JsonValue

# Formatting output of this size takes up to half a second, which is longer than starting a process.
_LARGE_CHARACTERS: Final = 500_000
_SHORTEST_SECONDS: Final = 0.1
_VIEW: Final = (sys.executable, "-I", "-m", "holmes.toolsets.kubernetes_view")


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A transformer with the arguments of one call. `objects` runs the command that writes the objects of a table."""

    form: ViewForm
    argument: str = ""
    objects: Callable[[ProcessLimits], Awaitable[ProcessOutcome]] | None = None


def view_of(
    transformer: ViewTransformer,
    rendered: Callable[[str], str],
    command_with: Callable[[dict[str, JsonValue]], Callable[[ProcessLimits], Awaitable[ProcessOutcome]]],
) -> View:
    """Return the view of one call. Raises `ToolError`.

    `rendered` renders a template. `command_with` returns the tool's command with some arguments replaced.
    """
    form = rendered(transformer.form)
    if form not in FORMS:
        raise ToolError(f"unknown form {form!r}; available: {', '.join(FORMS)}")
    if form != "table":
        return View(form=cast("ViewForm", form), argument=rendered(transformer.argument))
    if is_harmless_table(rendered(transformer.kinds)):
        return View(form="text")
    if transformer.objects is None:
        raise ToolError("the form 'table' requires 'objects', the arguments that make the command write JSON")
    return View(form="table", objects=command_with(dict(transformer.objects)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewSettings:
    """The redactor and the process settings of a view.

    `redactor` is None if redaction is off. The other fields apply to the separate process.
    """

    redactor: Redactor | None
    environment: Environment
    limits: ProcessLimits


async def apply_view(what: View, outcome: ProcessOutcome, settings: ViewSettings) -> ProcessOutcome:
    """Replace the output with its view. A view that fails sets the exit code, like the last program in a pipe."""
    written = outcome
    outcome = replace(written, stderr=await asyncio.to_thread(masked_text, written.stderr) if written.stderr else "")
    if not _is_whole(outcome):
        return replace(outcome, stdout="")
    if not outcome.stdout.strip():
        return outcome
    left_seconds = max(_SHORTEST_SECONDS, settings.limits.timeout_seconds - outcome.elapsed_seconds)
    settings = replace(settings, limits=replace(settings.limits, timeout_seconds=left_seconds))
    try:
        objects = await _behind(what, written, settings.limits)
        request = ViewRequest(form=what.form, text=outcome.stdout, argument=what.argument, objects=objects)
        # The view can be larger than the output, because each column may repeat a whole object.
        times = 1 + what.argument.count(",") if what.form == "columns" else 1
        if len(request.text) * times + len(objects) > _LARGE_CHARACTERS:
            return _joined(outcome, await _in_own_process(request, settings), request.form)
        shown = await asyncio.to_thread(view, request, settings.redactor)
    except (ViewError, ValueError, RecursionError) as error:
        said = f"{error if isinstance(error, ViewError) else 'the output is not shown: it cannot be parsed'}\n"
        return replace(outcome, stdout="", stderr=outcome.stderr + said, return_code=outcome.return_code or 1)
    return await _finished(request, shown, outcome, settings)


async def _finished(
    request: ViewRequest, shown: str, outcome: ProcessOutcome, settings: ViewSettings
) -> ProcessOutcome:
    if request.form == "jq":
        return _joined(
            outcome, await _in_own_process(replace(request, text=shown), settings, is_seen=True), request.form
        )
    if len(shown) > settings.limits.output_limit_bytes:
        return replace(outcome, stdout="", output_truncated=True)
    return _joined(outcome, replace(outcome, stdout=shown, stderr="", return_code=0), request.form)


def _is_whole(outcome: ProcessOutcome) -> bool:
    stopped = outcome.timed_out or outcome.output_truncated or outcome.memory_exceeded
    return not stopped and 0 <= outcome.return_code < 128


async def _behind(what: View, table: ProcessOutcome, limits: ProcessLimits) -> str:
    """Return the objects of a table as JSON, or "" if they cannot be read. In that case, the view rejects the table."""
    if what.objects is None:
        return ""
    outcome = await what.objects(limits)
    failed_alike = (outcome.return_code, outcome.stderr) == (table.return_code, table.stderr)
    is_complete = _is_whole(outcome) and (outcome.return_code == 0 or failed_alike)
    return outcome.stdout if is_complete else ""


async def _in_own_process(request: ViewRequest, settings: ViewSettings, *, is_seen: bool = False) -> ProcessOutcome:
    """Run the view in a process that can be stopped.

    The key is sent to standard input, because other processes can read environment variables.
    """
    key = None if is_seen else settings.redactor.key.hex() if settings.redactor is not None else ""
    fields = {**asdict(request), "key": key}
    stdin = await asyncio.to_thread(lambda: json.dumps(fields).encode())
    return await run_process(_VIEW, environment=settings.environment, limits=settings.limits, stdin=stdin)


def _joined(outcome: ProcessOutcome, shown: ProcessOutcome, form: ViewForm) -> ProcessOutcome:
    """Combine two outcomes like a pipe that fails if any of its programs fails."""
    nothing = "" if shown.stdout or shown.return_code or form not in {"yaml", "columns"} else "No objects found.\n"
    return replace(
        shown,
        stderr=outcome.stderr + shown.stderr + nothing,
        return_code=shown.return_code or outcome.return_code,
        elapsed_seconds=outcome.elapsed_seconds + shown.elapsed_seconds,
    )
