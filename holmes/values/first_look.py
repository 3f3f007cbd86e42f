"""The first look at the subject of a question: the verdict and the facts of the rules.

The tool `kubernetes_first_look` returns it as YAML, which models read and `builtin/triage` formats as its answer. Each
piece of evidence is on its own line, so that answers can cite it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, cast

from holmes.values.codec import Codec
from holmes.values.findings import Severity  # noqa: TC001  the codec reads the type hints
from holmes.values.verdicts import VerdictKind  # noqa: TC001  the codec reads the type hints

if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import Field
    from typing import Any

    from holmes.values.json_types import JsonValue

FIRST_LOOK_TOOL: Final = "kubernetes_first_look"
ALERT_TOOL: Final = "read_alert"
"""The tool that reads the condition of an alert from metrics."""
SIGNALS_TOOL: Final = "workload_signals"
"""The tool that reads the usual metrics of a workload."""
RELATED_TOOL: Final = "kubernetes_related"
"""The tool that lists the objects that are related to one object."""
ASK_TOOL: Final = "ask_holmes"
"""The tool of the MCP server that investigates a question."""
OWN_TOOLS: Final = frozenset({FIRST_LOOK_TOOL, ALERT_TOOL, SIGNALS_TOOL, RELATED_TOOL, ASK_TOOL})
"""The tools whose results are trusted by name, so that no other toolset may have them."""
_LIST_LENGTHS: Final = (12, 8, 5, 3, 2, 1, 0)
_WIDE: Final = 1_000_000
"""A line width that no value reaches, so that every value is on one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows that answer a question of fact, with cells separated by ` | `.

    `total` is the number of rows before the table was cut.
    """

    header: str
    rows: tuple[str, ...]
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstLook:
    """The verdict about a subject, and the facts behind it.

    `summary` is one sentence. `subject` contains objects such as `Deployment shop/checkout`. `scope` is the place that
    the answer covers. `chain` contains the objects from the subject to the culprit. `fix` contains lines of a shell
    script, which were not run. `others` describes incidents that do not explain the subject's problem. `notes` contains
    everything that the answer could not take into account. `against` contains what speaks against the cause. `heading`
    replaces the words of the verdict: a question of fact has no cause.
    """

    verdict: VerdictKind
    summary: str
    subject: tuple[str, ...] = ()
    scope: str = ""
    severity: Severity | None = None
    culprit: str = ""
    since: str = ""
    evidence: tuple[str, ...] = ()
    chain: tuple[str, ...] = ()
    fix: tuple[str, ...] = ()
    table: Table | None = None
    lines: tuple[str, ...] = ()
    neighbours: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    not_checked: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    against: tuple[str, ...] = ()
    taken_at: str = ""
    heading: str = ""

    @property
    def is_definite(self) -> bool:
        """Whether an object, event or status proves the cause. Log lines alone do not."""
        return self.verdict == "cause_found" and any(" log of " not in each for each in self.evidence)


def _is_empty(_field: Field[Any], value: object) -> bool:
    return value in (None, "", (), [])


_LOOKS: Final = Codec(omits=_is_empty)


def look_to_yaml(look: FirstLook, mask: Callable[[str], str] = str) -> str:
    """Format the look as YAML, with one line for each value. `mask` is applied to each string."""
    import yaml  # imported late because most runs of `holmes` do not need it

    document = _masked(_LOOKS.encode(look), mask)
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=_WIDE)


def _masked(value: JsonValue, mask: Callable[[str], str]) -> JsonValue:
    """Mask the strings of `value` and keep each of them on one line."""
    if isinstance(value, str):
        return " ".join(mask(value).split())
    if isinstance(value, list):
        return [_masked(item, mask) for item in value]
    if isinstance(value, dict):
        return {key: _masked(item, mask) for key, item in value.items()}
    return value


def fitting_look(look: FirstLook, fits: Callable[[str], bool], mask: Callable[[str], str] = str) -> str:
    """Format the look as YAML that `fits`. Long lists are cut step by step, and the summary stays whole.

    Returns the shortest form if no form fits.
    """
    text = look_to_yaml(look, mask)
    for most in _LIST_LENGTHS:
        if fits(text):
            break
        text = look_to_yaml(_cut(look, most), mask)
    return text


def _cut(look: FirstLook, most: int) -> FirstLook:
    """Return the look with at most `most` items in each list, and at least one piece of evidence."""
    table = look.table and replace(look.table, rows=look.table.rows[:most])
    return replace(
        look,
        subject=look.subject[: max(1, most)],
        evidence=look.evidence[: max(1, most)],
        chain=look.chain if len(look.chain) <= max(2, most) else (*look.chain[:most], look.chain[-1]),
        fix=look.fix[:most],
        table=table,
        lines=look.lines[:most],
        neighbours=look.neighbours[:most],
        others=look.others[: most // 2],
        not_checked=look.not_checked[:most],
        notes=look.notes[:most],
        against=look.against[:most],
    )


def look_from_yaml(text: str) -> FirstLook:
    """Read a look. Raises `ValueError` with a one-line message if `text` is not a look."""
    import yaml  # imported late because most runs of `holmes` do not need it

    try:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        document = yaml.load(text, Loader=loader)  # noqa: S506  both are safe
    except yaml.YAMLError as error:
        message = f"not a first look: {' '.join(str(error).split())}"
        raise ValueError(message) from error
    if not isinstance(document, dict) or "verdict" not in document:
        message = "not a first look; expected YAML with 'verdict'"
        raise ValueError(message)
    return _LOOKS.decode(FirstLook, cast("dict[str, Any]", document))
