"""Answers what the drain of a node or the restart of a workload would do: which pods end, and what would be lost."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.status import pod_ready
from holmes.kubernetes.fields import matches_selector, text
from holmes.kubernetes.kinds import SCALED
from holmes.triage.causes import look_for_cause
from holmes.triage.facts import fact, table_of
from holmes.triage.ledger import unread
from holmes.triage.markdown import counted, some_of
from holmes.triage.points import NUMBER_WORDS, number_of
from holmes.triage.states import lives
from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.kubernetes.cluster_state import ClusterState
    from holmes.triage.asked import Asked
    from holmes.triage.question import Question
    from holmes.triage.subjects import Subject
    from holmes.values.first_look import FirstLook

_DRAIN: Final = expression(
    r"\b(?:can|could|may|should|safe|ok|happens?|if|when|before|kann|darf|konnen|passiert|wenn|puedo|puede|podemos|seguro"
    r"|pasa|si|puis-je|peut-on|risque)\b.{0,40}\b(?:drain\w*|take (?:\S+ )?down|shut (?:\S+ )?down|reboot|entleer\w*"
    r"|leeren|vaci\w+|drena\w*|vider|neu ?starten|reiniciar|redemarrer)\b"
)
_RESTART: Final = r"(?:restart|bounce|reboot|recreate|redeploy|neu ?starten|neustarten|reiniciar|redemarrer)"
_LEAVE: Final = expression(
    r"\b(?:safe|ok|okay|fine|alright|harmless|risky|dangerous|sicher|seguro|sur|risque) (?:to|zu|de|a) (?:\w+ )?"
    rf"{_RESTART}\b"
    rf"|^(?:can|could|may|should|shall|must) (?:i|we|one) (?:\w+ )?{_RESTART}\b"
    rf"|^(?:kann|darf|soll|sollte|sollten|muss) (?:ich|wir|man) .{{1,60}}\b{_RESTART}\b"
    rf"|^(?:puedo|podemos|debo|debemos|deberia) {_RESTART}\b"
    rf"|^(?:puis-je|peut-on|dois-je|faut-il|est-ce que je peux) {_RESTART}\b"
)
_DISRUPT: Final = expression(
    r"\b(?:(?:can|could|may) (?:i|we|one)|(?:safe|ok|allowed) to|(?:kann|konnen|darf) (?:ich|wir|man)|puedo|podemos"
    r"|puis-je|peut-on)\b.{0,60}\b(?:evict|disrupt|verdrangen|desalojar|expulsar|evincer|expulser)\b"
    r"|\b(?:can|could|may|how many|wie viele)\b.{0,60}\b(?:evicted|disrupted)\b"
    r"|\bhow many (?:\w+ )?disruptions?\b"
)
_OTHER_EVICTION: Final = expression(
    r"\b(?:had|did|was|were|been|ever|suffered|hatte|hubo|few"
    r"|several|multiple|half|most|more|and)\b"
)
"""Words for an eviction that happened, or for an amount that is not a number."""
_UNLIMITED: Final = expression(
    r"\b(?:kubelet|pressure|memory|disk|oom|druck|scheduler|preempt\w*|priorit\w*|taints?)\b"
)
_EVERY: Final = expression(r"\b(?:all|every|both|each|alle|beide|todos|todas|tous|toutes)\b")
_PODS: Final = expression(
    rf"\b(?P<number>\d{{1,4}}|{'|'.join(word for word in NUMBER_WORDS if word.isalpha())})(?: \w+)?\s+"
    r"(?:pods?|replicas?|replikas?|copies|instances?|at once)\b"
)
_RESTARTED: Final = ("Deployment", "StatefulSet", "DaemonSet", "Pod")
_NONE_OF_ONE: Final = (0, "0%", "25%")
"""Values of `maxUnavailable` that allow no missing pod if there is only one: the API server rounds down."""
_STAYING: Final = frozenset({"DaemonSet", "Node"})
"""The owners of pods that a drain leaves alone."""
_MOST_NAMED: Final = 4


def asks_drain(question: Question, subject: Subject) -> bool:
    """Return whether a question asks if a node can be drained, or what its drain would do."""
    nodes = bool(subject.objects) and all(each.kind == "Node" for each in subject.objects)
    return nodes and _DRAIN.search(question.text) is not None and not question.asks("why", "trouble", "logs", "when")


def drain(asked: Asked) -> FirstLook:
    """Return what blocks the drain of the named nodes, and what would be lost. Room on other nodes is not examined."""
    state = asked.state
    gaps = unread(state, ("Pod", "PodDisruptionBudget"), ())
    if gaps:
        return fact(asked, f"{', '.join(gaps)} could not be read completely.", None, "inconclusive")
    names = {each.name for each in asked.subject.objects}
    there = [each for each in state.of("Pod") if each.text("spec", "nodeName") in names and lives(each)]
    evicted = [each for each in there if each.owner is None or each.owner.kind not in _STAYING]
    blocked = list(_limits(state, evicted))
    outages = [str(each.ref) for each in _outages(state, evicted)]
    lost = [f"{pod.ref} {what}" for pod in evicted for what in _losses(pod)]
    nodes = " and ".join(str(each.ref) for each in asked.subject.objects)
    first = some_of(blocked, _MOST_NAMED) if blocked else "no PodDisruptionBudget limits it"
    summary = f"A drain of {nodes} evicts {counted(len(evicted), 'pod')}; {first}."
    if outages:
        summary += f" All running pods of {some_of(outages, _MOST_NAMED)} are there."
    rows = [(pod.ref.path, str(state.workload_of(pod).ref)) for pod in evicted]
    notes = (*((f"{some_of(lost, _MOST_NAMED)}.",) if lost else ()), "The room on other nodes was not examined.")
    return fact(asked, summary, table_of(("evicted pod", "workload"), rows), notes=notes)


def asks_restart(question: Question, subject: Subject) -> bool:
    """Return whether a question asks if a person can or should restart a workload: "is it safe to restart web"."""
    run = any(each.kind in _RESTARTED for each in subject.objects) and set(question.kinds) <= {*_RESTARTED}
    return run and _LEAVE.search(question.text) is not None and not question.asks("why", "how_to", "when")


def restart(asked: Asked) -> FirstLook:
    """Return what a restart of the named workloads ends, and what would be lost, or the fault of a broken one."""
    state = asked.state
    gaps = unread(state, ("Pod",), ())
    if gaps:
        return fact(asked, f"{', '.join(gaps)} could not be read completely.", None, "inconclusive")
    named = [each for each in asked.subject.objects if each.kind in _RESTARTED]
    pods = list(dict.fromkeys(pod for each in named for pod in state.pods_of(each) or (each,) if pod.kind == "Pod"))
    lost = [f"{pod.ref} {what}" for pod in pods for what in _losses(pod)]
    told = "; ".join(_restarted(state, each) for each in named)
    notes = (*((f"{some_of(lost, _MOST_NAMED)}.",) if lost else ()), "Whether a restart helps was not examined.")
    look = look_for_cause(asked)
    if look.verdict == "cause_found":
        return replace(look, notes=(*look.notes, f"{told}.", *notes))
    return fact(asked, f"{told}.", notes=notes)


def _restarted(state: ClusterState, each: ClusterObject) -> str:
    """Return which pods a restart ends, and what it keeps."""
    pods = [each] if each.kind == "Pod" else [pod for pod in state.pods_of(each) if lives(pod)]
    volumes = [one for pod in pods for one in pod.children("spec", "volumes") if "persistentVolumeClaim" in one]
    claims = sorted({text(one, "persistentVolumeClaim", "claimName") for one in volumes})
    kept = f", and keeps its data in PersistentVolumeClaim {some_of(claims, _MOST_NAMED)}" if claims else ""
    if not pods:
        return f"{each.ref} has no pods to restart"
    if each.kind == "Pod":
        follows = (
            f"{state.workload_of(each).ref} decides if a new one comes" if each.owner else "nothing creates it again"
        )
        return f"{each.ref} ends, and {follows}{kept}"
    return _replaced(each, len(pods), kept, claimed=bool(claims))


def _replaced(each: ClusterObject, pods: int, kept: str, *, claimed: bool) -> str:
    """Return how a workload replaces its pods."""
    if each.boolean("spec", "paused"):
        return f"{each.ref} is paused, so a restart replaces nothing until it is resumed"
    if each.text("spec", "updateStrategy", "type") == "OnDelete":
        return f"A restart of {each.ref} replaces a pod only after the pod is deleted{kept}"
    number = counted(pods, "pod")
    if each.text("spec", "strategy", "type") == "Recreate":
        return f"A restart of {each.ref} ends its {number} before a new one starts{kept}"
    rolling = each.child("spec", "strategy", "rollingUpdate")  # the API server fills in 25% for both
    kept_up = rolling.get("maxSurge", "25%") not in (0, "0%") and rolling.get("maxUnavailable", "25%") in _NONE_OF_ONE
    surge = each.kind == "Deployment" and kept_up and not claimed
    if pods == 1:
        how = "a new pod is ready before its only pod ends" if surge else "it can be down until its only pod is back"
        return f"If {each.ref} is restarted, {how}{kept}"
    return f"A restart of {each.ref} replaces its {number}{kept}"


def asks_disruption(question: Question, subject: Subject) -> bool:
    """Return whether a question asks if pods of named workloads may be evicted, which their budgets decide."""
    run = any(each.kind in (*_RESTARTED, "PodDisruptionBudget") for each in subject.objects)
    other = question.asks("why", "trouble", "logs", "when", "how_to") or "ServiceAccount" in question.kinds
    plain = subject.without_names(question.text)
    other = other or question.period is not None or _OTHER_EVICTION.search(plain) is not None
    other = other or (any(map(str.isdigit, plain)) and _PODS.search(plain) is None)
    return run and len(subject.named) == 1 and not other and _DISRUPT.search(question.text) is not None


def disruption(asked: Asked) -> FirstLook:
    """Return how many disruptions the PodDisruptionBudgets of the named workloads allow now."""
    state, named = asked.state, asked.subject.objects
    gaps = unread(state, ("Pod", "PodDisruptionBudget"), asked.subject.namespaces)
    if gaps:
        return fact(asked, f"{', '.join(gaps)} could not be read completely.", None, "inconclusive")
    pods = [pod for each in named if each.kind in _RESTARTED for pod in state.pods_of(each) or (each,)]
    budgets = [
        each for each in state.of("PodDisruptionBudget")
        if each in named or any(_selects(each, pod) for pod in pods)
    ]  # fmt: skip
    if not budgets:
        return fact(asked, f"No PodDisruptionBudget limits the eviction of the pods of {named[0].ref}.")
    allowed = [(str(each.ref), each.at("status", "disruptionsAllowed")) for each in budgets]
    known = {name: number for name, number in allowed if isinstance(number, int)}
    if len(known) < len(allowed):
        return fact(asked, f"How many disruptions {allowed[0][0]} allows is not known.", None, "inconclusive")
    told = "; ".join(f"{name} allows {counted(number, 'disruption')} now" for name, number in known.items())
    return fact(asked, _decided(asked, pods, budgets, told, min(known.values())))


def _decided(
    asked: Asked, pods: Sequence[ClusterObject], budgets: Sequence[ClusterObject], told: str, least: int
) -> str:
    """Return whether the eviction of the pods is allowed now."""
    if _UNLIMITED.search(asked.subject.without_names(asked.question.text)) is not None:
        return (
            f"{told}, which limits only evictions through the API: not those by the kubelet, the scheduler or taints."
        )
    several = [pod for pod in pods if sum(_selects(each, pod) for each in budgets) > 1]
    if several:
        told = f"more than one PodDisruptionBudget selects {several[0].ref}, so the API server refuses its eviction"
        return f"No: {told}."
    if asked.question.asks("count"):
        return f"{told}."
    if least >= _wanted(asked, len(pods)):
        return f"Yes: {told}."
    leaving = [str(pod.ref) for each in budgets for pod in pods if _selects(each, pod) and _may_leave(each, pod)]
    if leaving:
        names = some_of(leaving, _MOST_NAMED)
        return f"{told}, but pods that are not ready can still be evicted: {names}."
    return f"No: {told}."


def _wanted(asked: Asked, pods: int) -> int:
    """Return how many pods the question wants to evict."""
    plain = asked.subject.without_names(asked.question.text)
    number = _PODS.search(plain)
    if number is not None:
        return int(number_of(number["number"]))
    return max(1, pods) if _EVERY.search(plain) is not None else 1


def _may_leave(budget: ClusterObject, pod: ClusterObject) -> bool:
    """Return whether a pod that is not ready can be evicted although its budget allows no disruption."""
    if pod_ready(pod):
        return False
    healthy, least = budget.integer("status", "currentHealthy"), budget.integer("status", "desiredHealthy")
    always = budget.text("spec", "unhealthyPodEvictionPolicy") == "AlwaysAllow"
    return always or pod.text("status", "phase") != "Running" or healthy >= least > 0


def _selects(budget: ClusterObject, pod: ClusterObject) -> bool:
    selector = budget.at("spec", "selector")
    same = pod.namespace == budget.namespace
    return same and isinstance(selector, dict) and matches_selector(selector, pod.labels)


def _outages(state: ClusterState, evicted: list[ClusterObject]) -> Iterator[ClusterObject]:
    """Yield the workloads none of whose running pods are elsewhere."""
    there = {each.ref for each in evicted}
    for workload in dict.fromkeys(state.workload_of(each) for each in evicted):
        running = {each.ref for each in state.pods_of(workload) if each.text("status", "phase") == "Running"}
        if workload.kind in SCALED and running and running <= there:
            yield workload


def _limits(state: ClusterState, evicted: list[ClusterObject]) -> Iterator[str]:
    """Yield the PodDisruptionBudgets that allow fewer disruptions than the drain makes, or have no status yet."""
    for budget in state.of("PodDisruptionBudget"):
        pods = [str(pod.ref) for pod in evicted if _selects(budget, pod)]
        allowed = budget.at("status", "disruptionsAllowed")
        if pods and not isinstance(allowed, int):
            yield f"it is not known how many disruptions {budget.ref} allows"
        elif isinstance(allowed, int) and allowed < len(pods):
            now = f"only {allowed} at a time" if allowed else "no disruption"
            yield f"{budget.ref} allows {now} of {some_of(pods, _MOST_NAMED)}"


def _losses(pod: ClusterObject) -> Iterator[str]:
    """Yield what would be lost with a pod."""
    if pod.owner is None:
        yield "has no owner, so nothing creates it again"
    if any("emptyDir" in each for each in pod.children("spec", "volumes")):
        yield "would lose the content of its emptyDir volumes"
