"""Reads the bounds on numbers in a question: "more than 3 restarts", "two times or more"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from holmes.triage.points import NUMBER_WORDS, number_of
from holmes.values.expressions import expression

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator, Mapping

_COUNT: Final = rf"\d{{1,6}}|{'|'.join(NUMBER_WORDS)}"
_COMPARED: Final = expression(
    r"(?P<how>more (?:often )?than|(?:great|long|slow|larg|bigg|high|fast|short|quick|small|low)e?r than"
    r"|exceed(?:s|ed|ing)?|beyond|langer als|langsamer als|grosser als|hoher als|schneller als|kurzer als|kleiner als"
    r"|mas (?:largas?|largos?|lentas?|lentos?|tiempo|altas?|altos?) (?:de|que)|plus (?:long|longtemps|lents?|lentes?)"
    r" (?:de|que)|over|above|at least|fewer than|less (?:often )?than|below|under|at most"
    r"|exactly|>=|<=|>|<|como (?:mucho|maximo|minimo)|a lo sumo|(?:tout )?au plus|au (?:maximum|minimum)"
    r"|mehr als|ofter als|haufiger als|mindestens|weniger als|seltener als|hochstens|genau|mas de"
    r"|mas que|mas veces que|al menos|por lo menos|menos de|exactamente|plus de|plus souvent que|au moins|moins de"
    rf"|exactement)\s*(?P<number>\d{{1,9}}(?:\.\d+)?|(?:{_COUNT})(?=mal\b|\b))\s*(?P<of>(?!(?:because|since|weil|da|porque|parce|car)\b)[a-z%]*)"
)
_EXACTLY: Final = expression(
    r"\b(?:only|just|with|have|has|having|mit|nur|haben|hat|con|solo|tienen|tiene|avec|seulement|ont)\s+"
    rf"(?P<number>{_COUNT})\s+"
    r"(?P<of>(?:repl|cont|rest|neust)[a-z]*)"
)
_NO_MORE: Final = expression(
    r"\b(?:no|not|nicht|pas) (?:(?P<less>less|fewer|weniger|menos|moins)|more|mehr|mas|plus) (?:than|als|de|que) (?=\d|"
    rf"(?:{_COUNT})\b)"
)
_OR_MORE: Final = expression(
    rf"(?<![\w.:-])(?P<number>\d{{1,9}}|{'|'.join(NUMBER_WORDS)})(?: ?(?P<of>times|mal|veces|fois|restarts?|neustarts?"
    r"|reinicios?|redemarrages?|replicas?|replikas?|repliques?|containers?))?"
    r"(?:,? (?:or|and|oder|und|o|y|ou|et) (?:(?P<less>less|fewer|below|weniger|menos|moins)"
    r"|(?:even )?(?:more|above|up|over|mehr|ofter|haufiger|mas|plus)(?: often)?)|(?<=\d)\+)(?![\w+])"
)
"""A bound behind its number: "2 times or more", "3+ restarts"."""
_PODS_RESTARTED: Final = expression(
    r"\bpods? (?:(?:that|which|die|que|qui) )?(?:(?:have|were|se han|ont|sont) )?"
    r"(?:restarted|neugestartet|neu gestartet|reiniciad[oa]s?|redemarres?)\s+"
    rf"(?P<number>{_COUNT})(?P<of>(?: (?:times|mal|veces|fois))?)(?=[?!.,]|$| in\b| en\b| dans\b)"
)
"""Pods with a number of restarts: "pods restarted twice". Of one object, the number only tells what happened."""
Comparator: TypeAlias = Literal[">", ">=", "<", "<=", "="]
_HOW: Final[Mapping[Comparator, tuple[str, ...]]] = {
    ">": (
        ">", "more than", "more often than", "over", "above", "mehr als", "ofter als", "haufiger als",
        "mas de", "mas que", "mas veces que", "plus de", "plus souvent que",
    ),
    ">=": (">=", "at least", "mindestens", "al menos", "por lo menos", "como minimo", "au moins", "au minimum"),
    "<": (
        "<", "fewer than", "less than", "less often than", "below", "under", "weniger als", "seltener als", "menos de",
        "moins de",
    ),
    "<=": (
        "<=", "at most", "hochstens", "como mucho", "como maximo", "a lo sumo", "au plus", "tout au plus", "au maximum",
    ),
    "=": ("exactly", "genau", "exactamente", "exactement"),
}  # fmt: skip


_LESSER: Final = ("fast", "short", "quick", "small", "low", "schnell", "kurz", "klein")
_TIMES: Final = {
    "once": 1, "einmal": 1, "una vez": 1, "une fois": 1, "twice": 2, "two times": 2,
    "zweimal": 2, "dos veces": 2, "deux fois": 2,
    "three times": 3, "dreimal": 3, "tres veces": 3, "trois fois": 3,
}  # fmt: skip
_COUNTED: Final = expression(rf"\b(?:{'|'.join(_TIMES)})\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A bound on a number, for example `more than 3 restarts`. `of` is the word after the number, or empty."""

    how: Comparator
    number: float
    of: str = ""

    def holds(self, value: float) -> bool:
        """Return whether `value` is within the bound."""
        return {
            ">": value > self.number,
            ">=": value >= self.number,
            "<": value < self.number,
            "<=": value <= self.number,
            "=": value == self.number,
        }[self.how]

    def __str__(self) -> str:
        return f"{self.how} {self.number:g} {self.of}".strip()


_ONE_OR_NEXT: Final = expression(
    rf"(?<![\w.:-])(?P<one>{_COUNT}) (?:or|oder|o|ou) (?P<next>{_COUNT})"
    r" (?P<of>replicas?|replikas?|repliques?|restarts?|neustarts?|reinicios?|redemarrages?|containers?)\b"
)


def with_bounds_first(text: str) -> str:
    """Return a folded text with numbers for words such as "twice", and bounds before their numbers, not negated."""
    numbered = _COUNTED.sub(lambda match: str(_TIMES[match[0]]), text)
    positive = _NO_MORE.sub(lambda match: "at least " if match["less"] else "at most ", numbered)
    return _ONE_OR_NEXT.sub(_both_bounds, _OR_MORE.sub(_bound_first, positive))


def _bound_first(match: re.Match[str]) -> str:
    """Write "at least 2 times" for "2 times or more"."""
    return " ".join(filter(None, ("at most" if match["less"] else "at least", match["number"], match["of"])))


def _both_bounds(match: re.Match[str]) -> str:
    """Write "at least 2 replicas at most 3 replicas" for "2 or 3 replicas". Other alternatives stay as they are."""
    if number_of(match["next"]) - number_of(match["one"]) != 1:
        return match[0]
    return f"at least {match['one']} {match['of']} at most {match['next']} {match['of']}"


def _number(written: str) -> float:
    return float(written) if written[0].isdigit() else number_of(written)


def _direction(comparative: str) -> Comparator:
    """Return the sign of a comparative: `<` for "faster than", `>` for "slower than" or "langer als"."""
    return "<" if comparative.startswith(_LESSER) else ">"


def comparisons_in(text: str) -> Iterator[Comparison]:
    """Yield the bounds on numbers in a folded text."""
    for match in _COMPARED.finditer(text):
        how = next((sign for sign, said in _HOW.items() if match["how"] in said), _direction(match["how"]))
        yield Comparison(how=how, number=_number(match["number"]), of=match["of"])
    for form in (_EXACTLY, _PODS_RESTARTED):
        for match in form.finditer(text):
            yield Comparison(how="=", number=number_of(match["number"]), of=match["of"].strip())
