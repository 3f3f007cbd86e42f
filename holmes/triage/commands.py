"""Writes the kubectl commands that a question asks for: port-forward, exec and logs. Holmes does not run them."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from holmes.diagnosis.facts.pods import containers_of
from holmes.kubernetes.fields import children, integer, text, text_map
from holmes.triage.facts import fact
from holmes.triage.filters import pod_spec
from holmes.triage.log_lines import asks_previous
from holmes.triage.states import is_ready
from holmes.triage.vocabulary import beginnings, folded
from holmes.values.expressions import expression
from holmes.values.fixes import namespace_option, resource_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.triage.asked import Asked
    from holmes.triage.question import Question
    from holmes.triage.subjects import Subject
    from holmes.values.first_look import FirstLook

_FORWARDED: Final = ("Service", "Deployment", "StatefulSet", "Pod", "ReplicaSet", "DaemonSet")
_ENTERED: Final = ("Pod", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job")
_LOCAL_START: Final = 8080
_PRIVILEGED: Final = 1024
_MOST_PORT: Final = 65_535
_PAIR: Final = expression(r"(?<![\d.:])(\d{2,5}):(\d{2,5})(?![\d:])")
_LOCAL: Final = expression(
    r"\b(?:localhost|127\.0\.0\.1):(\d{2,5})"
    r"|\b(?:locally|local|lokal(?:en|er|em)?)\s+(?:\w+\s+)?(?:port |puerto )?(\d{2,5})\b"
    r"|\b(?:puerto|port) local (\d{2,5})\b|\b(\d{2,5}) (?:locally|lokal|en local)\b"
    r"|\b(?:my|meinem|mi|mon) (?:port|puerto) (\d{2,5})\b"
)
_PORT: Final = expression(r"(?<![\w.:=-])(\d{2,5})(?![\w.:=-])")
_PROGRAMS: Final = (
    r"psql|pg_dump|redis-cli|valkey-cli|mysql|mariadb|mongosh?|cqlsh|sqlite3|bash|zsh|printenv|rails console|etcdctl"
    r"|rabbitmqctl|jstack|jcmd|nslookup"
)
_WORDS: Final = r"sh|ash|env|ps|df|top|python3?|node|irb|dig|curl|wget|ls|cat|id|whoami|hostname|free|date|mount|du"
"""Programs whose names are also other words. They count after a verb such as "run", or before one in German."""
_PROGRAM: Final = expression(
    rf"(?<![\w./-])(?:(?P<program>(?:{_PROGRAMS})(?![\w./-])(?: (?:-[\w-]+|ping|info|status|list|version)(?!\S))*)"
    r"|(?:run|execute|ejecut\w+|lanz\w+|lanc\w+|execut\w+)\s+(?:the |a |an |el |un |la |le )?"
    rf"(?P<word>{_WORDS})(?![\w./-])"
    rf"|(?P<german>{_WORDS})(?![\w./-])(?= .{{0,60}}\bausfuhr))"
)
_RUNS_QUOTED: Final = expression(r"\b(?:run|execute|ejecut\w+|lanz\w+|lanc\w+|execut\w+|ausfuhr\w*)\s+[`'\"]")
_AFTER: Final = expression(r"(?<!\S)--\s+(?P<command>.{1,200}?)\s*$")
_SIDECARS: Final = ("istio-proxy", "linkerd-proxy", "envoy", "vault-agent", "cloud-sql-proxy")


def asks_port_forward(question: Question, subject: Subject) -> bool:
    """Return whether a question asks how to reach an object from the person's own computer."""
    local = beginnings("own computer").search(question.spoken) and bool(subject.named)
    wants = not question.asks("why", "trouble", "logs") and not question.symptoms - {"unreachable"}
    return question.asks("port_forward") or bool(local and wants)


def asks_exec(question: Question, subject: Subject) -> bool:
    """Return whether a question asks how to run a command in a container."""
    if question.asks("exec"):
        return True
    inside = beginnings("inside").search(question.spoken) and bool(subject.named)
    told = _AFTER.search(question.written) or _RUNS_QUOTED.search(question.text) or _named_program(question, subject)
    return bool(inside and told) and not question.asks("why", "trouble", "logs", "count")


def asks_log_command(question: Question, subject: Subject) -> bool:
    """Return whether a question asks for the command that shows logs, not for the logs."""
    return bool(question.asks("logs") and subject.named and beginnings("command").search(question.spoken))


def port_forward(asked: Asked) -> FirstLook:
    """Return the command that forwards a local port to the named object."""
    found = _first(asked, _FORWARDED)
    if found is None:
        return _unnamed(asked, "forward a port to")
    numbers = _numbers_of(asked, found)
    ports = _ports(found)
    declared = [number for _, number in ports]
    named = [number for name, number in ports if name and name in asked.question.words]
    local = numbers.local or next((one for one in numbers.others if one not in declared), 0)
    remote = numbers.remote or next((one for one in numbers.others if one in declared), 0)
    if not remote and not ports and local and not numbers.local:
        remote, local = local, 0
    remote = remote or next(iter(named or declared), 0)
    if not remote:
        text = f"{found.ref} declares no port, so the port for `kubectl port-forward` is unknown."
        return fact(asked, text, None, "inconclusive")
    local = local or (remote if remote >= _PRIVILEGED else _LOCAL_START)
    command = (
        f"kubectl port-forward {shlex.quote(resource_path(found.ref))} {local}:{remote}{namespace_option(found.ref)}"
    )
    reach = f"Run this command to reach port {remote} of {found.ref} on localhost:{local}. Holmes does not run it."
    undeclared = (f"{found.ref} does not declare port {remote}.",) if declared and remote not in declared else ()
    look = fact(asked, reach, notes=(*undeclared, *_idle(asked, found)))
    return replace(look, fix=(command,))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Numbers:
    """The ports that a question names. `others` may be local or remote."""

    local: int = 0
    remote: int = 0
    others: tuple[int, ...] = ()


def _numbers_of(asked: Asked, found: ClusterObject) -> _Numbers:
    plain = asked.question.text.replace(found.name, " ")
    pair, local = _PAIR.search(plain), _LOCAL.search(plain)
    if pair is not None:
        return _Numbers(local=int(pair[1]), remote=int(pair[2]))
    here = int(next(filter(None, local.groups()))) if local is not None else 0
    others = (int(match[1]) for match in _PORT.finditer(plain))
    return _Numbers(local=here, others=tuple(one for one in others if one != here and 0 < one <= _MOST_PORT))


def exec_command(asked: Asked) -> FirstLook:
    """Return the command that opens a shell, or runs the program of the question, in a container."""
    found = _first(asked, _ENTERED)
    if found is None:
        return _unnamed(asked, "open a shell in")
    names = [text(each, "name") for each in children(pod_spec(found), "containers")]
    container = _container(asked, found, names)
    option = f" -c {shlex.quote(container)}" if len(names) > 1 else ""
    program = _program(asked.question, asked.subject) or "sh"
    ready = next((pod for pod in asked.state.pods_of(found) if is_ready(pod)), None)
    stable = ready if found.kind == "StatefulSet" and ready is not None else found  # its pods keep their names
    target = f"{shlex.quote(resource_path(stable.ref))}{option}{namespace_option(found.ref)}"
    what = "open a shell" if program in ("sh", "bash", "zsh", "ash") else f"run `{program}`"
    told = f"Run this command to {what} in container {container} of {found.ref}. Holmes does not run it."
    idle = _idle(asked, found, container)
    pod = next(iter(asked.state.pods_of(found)), found)
    debug = f"kubectl debug -it pod/{pod.name} --image=busybox --target={container}{namespace_option(pod.ref)}"
    look = fact(asked, told, notes=idle)
    return replace(
        look, fix=(f"kubectl exec -it {target} -- {program}", *((debug,) if idle and pod.kind == "Pod" else ()))
    )


def log_command(asked: Asked) -> FirstLook:
    """Return the command that shows the logs of the named object."""
    found = _first(asked, (*_ENTERED, "CronJob"))
    if found is None:
        return _unnamed(asked, "show the logs of")
    names = [text(each, "name") for each in children(pod_spec(found), "containers")]
    container = _container(asked, found, names)
    options = f" -c {shlex.quote(container)}" if len(names) > 1 else ""
    options += (
        " --previous"
        if asks_previous(asked.question) or beginnings("previous run").search(asked.question.spoken)
        else ""
    )
    options += " -f" if beginnings("following").search(asked.question.spoken) else " --tail=100"
    command = f"kubectl logs {shlex.quote(resource_path(found.ref))}{options}{namespace_option(found.ref)}"
    return replace(
        fact(asked, f"Run this command to see the log of {found.ref}. Holmes does not run it."), fix=(command,)
    )


def _program(question: Question, subject: Subject) -> str:
    """Return the command line that the question wants to run: after `--`, in quotes, or a well-known program."""
    after = _AFTER.search(question.written)
    if after is not None:
        return after["command"]
    names = {each.name for each in subject.named} | {*subject.namespaces}
    quoted = next((each for each in question.quoted if folded(each) not in names), "")
    return quoted or _named_program(question, subject)


def _named_program(question: Question, subject: Subject) -> str:
    plain = question.text
    for name in sorted((each.name for each in subject.objects), key=len, reverse=True):
        plain = plain.replace(name, " ")
    match = _PROGRAM.search(plain)
    return next(filter(None, match.groups())) if match else ""


def _container(asked: Asked, found: ClusterObject, names: Sequence[str]) -> str:
    """Return the container that the question names, the default one of the pod, or the first that is not a proxy."""
    default = found.annotations.get("kubectl.kubernetes.io/default-container", "")
    named = next((name for name in names if name in asked.question.words and name != found.name), "")
    own = next((name for name in names if name not in _SIDECARS), "")
    return named or (default if default in names else "") or own or next(iter(names), "")


def _idle(asked: Asked, found: ClusterObject, container: str = "") -> tuple[str, ...]:
    """Return a note if no container of the object runs, so that the command fails."""
    selector = text_map(found.body, "spec", "selector") if found.kind == "Service" else {}
    pods = asked.state.selected("Pod", found.namespace, selector) if selector else asked.state.pods_of(found)
    every = [one for pod in pods for one in containers_of(pod) if one.kind == "main" and container in ("", one.name)]
    if any(one.running for one in every):
        return ()
    reason = next((text(one.waiting, "reason") or text(one.terminated, "reason") for one in every), "")
    return (f"No container of {found.ref} is running{f' ({reason})' if reason else ''}, so the command fails for now.",)


def _first(asked: Asked, kinds: tuple[str, ...]) -> ClusterObject | None:
    wanted = [kind for kind in asked.question.kinds if kind in kinds]
    found = [each for each in asked.subject.objects if each.kind in kinds]
    return next((each for each in found if each.kind in wanted), found[0] if found else None)


def _unnamed(asked: Asked, what: str) -> FirstLook:
    return fact(
        asked,
        f"Not understood: name the object to {what}, for example `deployment/checkout in namespace shop`.",
        None,
        "not_understood",
    )


def _ports(each: ClusterObject) -> list[tuple[str, int]]:
    if each.kind == "Service":
        return [(text(port, "name"), integer(port, "port")) for port in each.children("spec", "ports")]
    return [
        (text(port, "name"), integer(port, "containerPort"))
        for one in children(pod_spec(each), "containers")
        for port in children(one, "ports")
    ]
