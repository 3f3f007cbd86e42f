"""The cluster that `benchmarks/policies.py` investigates: outputs of tools, and the facts that are planted in them.

Everything follows from a seed, so every policy is shown the same. A fact is what an investigation stands on: a pod and
its exit code, an image, an error with its address, a key of a ConfigMap, a condition of a node. Around it is what a
healthy cluster says, with warnings that mean nothing.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

FactKind: TypeAlias = Literal["exit", "image", "error", "key", "node"]
Mention: TypeAlias = Literal["said", "cited", "shown"]

ROUNDS_PER_FACT = 3
POLLING_ROUNDS = 10
CHARACTERS_PER_TOKEN = 2.9
HUGE_TOKENS = 30_000

_KINDS: tuple[FactKind, ...] = ("exit", "image", "error", "key", "node")
_TOOL_OF: dict[FactKind, str] = {
    "exit": "kubectl_describe",
    "image": "kubectl_get_json",
    "error": "kubectl_logs",
    "key": "kubectl_get_yaml",
    "node": "kubectl_get",
}
_APPS = ("checkout", "cart", "ledger", "payments", "search", "billing", "auth", "inventory", "mailer", "gateway")
_SUFFIX = "bcdfghjklmnpqrstvwxz2456789"
_EXITS = ((137, "OOMKilled"), (1, "Error"), (2, "Error"), (139, "Error"), (126, "ContainerCannotRun"), (143, "Error"))
_FAULTS = ("connection refused", "i/o timeout", "no such host", "certificate has expired", "too many connections")
_CONDITIONS = ("DiskPressure", "MemoryPressure", "PIDPressure", "NetworkUnavailable")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """What is planted in the first result of `round_number`. It stands wherever all `tokens` stand near each other.

    `sentence` is how the model says it, `note` how a summary does, `lines` how the tool shows it.
    """

    number: int
    kind: FactKind
    round_number: int
    mention: Mention
    tokens: tuple[str, ...]
    sentence: str
    note: str
    lines: tuple[str, ...]

    def stands_in(self, text: str, most_characters: int) -> bool:
        """Whether `text` has all tokens within `most_characters` of the first one."""
        first, *others = self.tokens
        start = text.find(first)
        while start >= 0:
            around = text[max(0, start - most_characters) : start + len(first) + most_characters]
            if all(other in around for other in others):
                return True
            start = text.find(first, start + 1)
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCall:
    """One call of the scripted model; equal arguments give equal outputs."""

    tool: str
    target: str
    number: int


@dataclass(slots=True)
class World:
    """All of it for one seed."""

    seed: int
    rounds: int
    facts: tuple[Fact, ...] = ()
    calls: tuple[tuple[PlannedCall, ...], ...] = ()
    _outputs: dict[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        chance = _chance(self.seed)
        numbers = range((self.rounds - 1) // ROUNDS_PER_FACT)
        self.facts = tuple(_fact(number, number * ROUNDS_PER_FACT + 1, chance) for number in numbers)
        by_round = {fact.round_number: fact for fact in self.facts}
        self.calls = tuple(_calls(number, by_round.get(number), chance) for number in range(self.rounds))

    def output(self, number: int) -> str:
        """What the call of this number returns."""
        if number not in self._outputs:
            self._outputs[number] = self._written(number)
        return self._outputs[number]

    def fact_of_round(self, round_number: int) -> Fact | None:
        """What was planted there."""
        return next((fact for fact in self.facts if fact.round_number == round_number), None)

    def _written(self, number: int) -> str:
        chance = _chance(self.seed * 1_000_003 + number)
        round_number, index = divmod(number, 10)
        if number < 0:  # the polled table: the same until something happened
            rows = [_pod_row(_chance(self.seed + row), restarted=row == -number % 40) for row in range(40)]
            return "\n".join(["NAMESPACE   NAME   READY   STATUS   RESTARTS   AGE", *rows])
        call = self.calls[round_number][index]
        fact = self.fact_of_round(round_number) if index == 0 else None
        return _output(call.tool, call.target, fact, _size_tokens(chance), chance)


def _chance(seed: int) -> random.Random:
    return random.Random(seed)  # noqa: S311  benchmark data


def pod_name(chance: random.Random) -> str:
    """A pod of a Deployment, a StatefulSet or a DaemonSet."""
    app = chance.choice(_APPS)
    match chance.randrange(5):
        case 0:
            return f"{app}-db-{chance.randrange(900)}"
        case 1:
            return f"{app}-agent-{_letters(chance, 5)}"
        case _:
            return f"{app}-{_letters(chance, 9)}-{_letters(chance, 5)}"


def _letters(chance: random.Random, count: int) -> str:
    return "".join(chance.choices(_SUFFIX, k=count))


def _fact(number: int, round_number: int, chance: random.Random) -> Fact:
    kind = _KINDS[number % len(_KINDS)]
    mention: Mention = chance.choices(("said", "cited", "shown"), weights=(40, 30, 30))[0]
    tokens, sentence, note, lines = _MAKERS[kind](number, chance)
    return Fact(
        number=number,
        kind=kind,
        round_number=round_number,
        mention=mention,
        tokens=tokens,
        sentence=sentence,
        note=note,
        lines=lines,
    )


_Made: TypeAlias = tuple[tuple[str, ...], str, str, tuple[str, ...]]


def _exit_fact(number: int, chance: random.Random) -> _Made:
    pod, (code, reason) = f"{pod_name(chance)}{number % 10}", chance.choice(_EXITS)
    lines = (f"Name:             {pod}", "    Last State:     Terminated", f"      Reason:       {reason}")
    shown = (*lines, f"      Exit Code:    {code}")
    return (pod, str(code)), f"Pod {pod} exited with {code} ({reason}).", f"{pod}: last exit code {code}", shown


def _image_fact(number: int, chance: random.Random) -> _Made:
    image = f"registry.shop.example/{chance.choice(_APPS)}/{_letters(chance, 4)}:v{number}.{chance.randrange(40)}.1-rc2"
    lines = (f'          "image": "{image}",', '          "imagePullPolicy": "Always",')
    return (image,), f"The failing rollout runs {image}.", f"suspect image {image}", lines


def _error_fact(number: int, chance: random.Random) -> _Made:
    host, fault = f"{chance.choice(_APPS)}-{_letters(chance, 4)}.shop.svc:{5000 + number}", chance.choice(_FAULTS)
    line = f'2026-11-21T10:{number % 60:02d}:07Z ERROR pool "could not connect" error="dial tcp {host}: {fault}"'
    return (host, fault), f"Its log says dial tcp {host}: {fault}.", f"{host} fails with {fault}", (line,)


def _key_fact(number: int, chance: random.Random) -> _Made:
    app = chance.choice(_APPS)
    config, key = f"{app}-settings-{_letters(chance, 4)}", f"{app.upper()}_POOL_SIZE_{number}"
    lines = (f"  name: {config}", "data:", f'  {key}: "0"')
    return (config, key), f"ConfigMap {config} sets {key} to 0.", f"{key} in configmap {config} is 0", lines


def _node_fact(number: int, chance: random.Random) -> _Made:
    node, condition = f"ip-10-{number}-{chance.randrange(250)}-7.compute.internal", chance.choice(_CONDITIONS)
    line = f"{node}   NotReady,{condition}   <none>   41d   v1.29.3"
    return (node, condition), f"Node {node} reports {condition}.", f"{condition} on node {node}", (line,)


_MAKERS: dict[FactKind, Callable[[int, random.Random], _Made]] = {
    "exit": _exit_fact,
    "image": _image_fact,
    "error": _error_fact,
    "key": _key_fact,
    "node": _node_fact,
}


def _calls(round_number: int, fact: Fact | None, chance: random.Random) -> tuple[PlannedCall, ...]:
    tools = chance.choices(tuple(_TOOL_OF.values()), k=chance.choices((1, 2, 3), weights=(40, 40, 20))[0])
    if fact is not None:
        tools[0] = _TOOL_OF[fact.kind]
    calls = [
        PlannedCall(tool=tool, target=pod_name(chance), number=round_number * 10 + index)
        for index, tool in enumerate(tools)
    ]
    if round_number % POLLING_ROUNDS == POLLING_ROUNDS - 1:  # looks at all pods again
        calls.append(PlannedCall(tool="kubectl_get", target="all pods", number=-1 - round_number // 40))
    return tuple(calls)


def _size_tokens(chance: random.Random) -> int:
    low, high = chance.choices(
        ((200, 800), (800, 2_500), (2_500, 6_000), (HUGE_TOKENS, HUGE_TOKENS)), weights=(55, 32, 11, 2)
    )[0]
    return chance.randint(low, high)


def _output(tool: str, target: str, fact: Fact | None, tokens: int, chance: random.Random) -> str:
    """About `tokens` of what `tool` prints, the fact somewhere in it."""
    make = _LINES[tool]
    lines: list[str] = []
    size = 0
    while size < tokens * CHARACTERS_PER_TOKEN:
        lines.append(make(target, chance))
        size += len(lines[-1]) + 1
    if fact is not None:
        at = chance.randrange(len(lines) + 1)
        lines[at:at] = fact.lines
    head = _HEADS.get(tool, "")
    return head + "\n".join(lines)


def _pod_row(chance: random.Random, *, restarted: bool = False) -> str:
    return f"shop   {pod_name(chance)}   1/1   Running   {2 if restarted else 0}   {chance.randrange(1, 40)}d"


def _table_line(_: str, chance: random.Random) -> str:
    return _pod_row(chance, restarted=chance.random() < 0.04)


def _log_line(target: str, chance: random.Random) -> str:
    clock = f"2026-11-21T10:{chance.randrange(60):02d}:{chance.randrange(60):02d}Z"
    address = f"10.0.{chance.randrange(250)}.{chance.randrange(250)}"
    match chance.randrange(40):
        case 0:
            return f"{clock} WARN {target} slow query took {chance.randrange(900)} ms on {address}:5432, retried"
        case 1:
            return f"{clock} ERROR {target} client {address} went away: broken pipe"
        case _:
            path = f"/api/{chance.choice(_APPS)}/{chance.randrange(9_999)}"
            return f"{clock} INFO {target} GET {path} 200 {chance.randrange(90)}ms from {address}"


def _describe_line(target: str, chance: random.Random) -> str:
    app = chance.choice(_APPS)
    return chance.choice(
        (
            f"    {app.upper()}_URL:  http://{app}.shop.svc:8080",
            f"    Image:          registry.shop.example/{app}/web:v2.{chance.randrange(30)}.0",
            f"    Limits:         cpu {chance.randrange(1, 9)}00m, memory {chance.randrange(1, 9)}00Mi",
            f"    Mounts:         /etc/{app} from {app}-config (ro)",
            f"    Liveness:       http-get http://:8080/healthz delay={chance.randrange(30)}s timeout=1s",
            f"  Normal  Pulled  {chance.randrange(50)}m  kubelet  Container image already present for {target}",
            f"  Warning Unhealthy {chance.randrange(50)}m kubelet Readiness probe failed once: HTTP 503 of {target}",
        )
    )


def _json_line(_: str, chance: random.Random) -> str:
    app = chance.choice(_APPS)
    image = f"registry.shop.example/{app}/web:v2.{chance.randrange(30)}.{chance.randrange(9)}"
    return "          " + json.dumps({"name": pod_name(chance), "image": image, "ready": True, "restarts": 0}) + ","


def _yaml_line(_: str, chance: random.Random) -> str:
    app = chance.choice(_APPS)
    key = f"{app.upper()}_{chance.choice(('URL', 'MODE', 'TTL', 'SIZE'))}_{chance.randrange(99)}"
    return f"  {key}: {app}-{chance.randrange(999)}"


_LINES: dict[str, Callable[[str, random.Random], str]] = {
    "kubectl_get": _table_line,
    "kubectl_logs": _log_line,
    "kubectl_describe": _describe_line,
    "kubectl_get_json": _json_line,
    "kubectl_get_yaml": _yaml_line,
}
_HEADS = {
    "kubectl_get": "NAMESPACE   NAME   READY   STATUS   RESTARTS   AGE\n",
    "kubectl_get_yaml": "apiVersion: v1\nkind: List\n",
    "kubectl_get_json": '{"kind": "List", "items": [\n',
}
TOOL_NAMES = tuple(_LINES)
