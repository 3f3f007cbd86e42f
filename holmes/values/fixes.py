"""Writes the steps of a fix as lines of a shell script: kubectl commands, JSON patches and instructions.

Holmes never runs them.
"""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holmes.values.findings import FixStep, ObjectRef

_ROLLED_OUT: Final = frozenset({"Deployment", "StatefulSet", "DaemonSet"})
_MOST_STEPS: Final = 4


def fix_line(step: FixStep) -> str:
    """Return a step as one line of a shell script.

    A patch tests the old value, so that it cannot overwrite another change. An instruction is a comment.
    """
    if step.kind == "instruction":
        return f"# {step.action}"
    if step.kind == "command":
        return f"kubectl{namespace_option(step.object)} {step.action}"
    test = [{"op": "test", "path": step.path, "value": json.loads(step.old)}] if step.old else []
    change = {"op": "replace" if step.old else "add", "path": step.path, "value": json.loads(step.action)}
    patch = json.dumps([*test, change], ensure_ascii=False, separators=(",", ":"))
    target = f"{namespace_option(step.object)} patch {shlex.quote(resource_path(step.object))}"
    return f"kubectl{target} --type=json -p {shlex.quote(patch)}"


def fix_lines(steps: Iterable[FixStep]) -> tuple[str, ...]:
    """Return the steps as lines of a shell script, and the check of the last step that has one."""
    steps = tuple(steps)[:_MOST_STEPS]
    checks = [f"{step.check}  # shows whether it worked" for step in steps if step.check]
    return (*map(fix_line, steps), *checks[-1:])


def check_of(ref: ObjectRef) -> str:
    """Return the command that shows whether a change of the object worked."""
    if ref.kind in _ROLLED_OUT:
        return f"kubectl{namespace_option(ref)} rollout status {shlex.quote(resource_path(ref))} --timeout=2m"
    if ref.kind == "Service":
        label = shlex.quote(f"kubernetes.io/service-name={ref.name}")
        return f"kubectl{namespace_option(ref)} get endpointslices -l {label}"
    return f"kubectl{namespace_option(ref)} get {shlex.quote(resource_path(ref))}"


def resource_path(ref: ObjectRef) -> str:
    """Return the object in the form that kubectl and the tools accept: `deployment/checkout`."""
    kind = f"{ref.kind}.{ref.group}" if ref.group else ref.kind
    return f"{kind.lower()}/{ref.name}"


def namespace_option(ref: ObjectRef) -> str:
    """Return the option ` -n shop`, or an empty string for objects without a namespace."""
    return f" -n {shlex.quote(ref.namespace)}" if ref.namespace else ""
