"""Scenarios: the header of a file, its steps, and how both are parsed.

A scenario is one YAML file of several documents, read from top to bottom. The header (the expectations) comes first.
Manifests, which are applied, and steps (`step: ready`, `step: patch`, ...) follow. `<alias>` is replaced by the real
name of the namespace with that alias, `<run>` by letters that are unique to the run. Unknown keys are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias

import yaml
from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter

from holmes.values.findings import ObjectRef
from holmes.values.json_types import JsonObject
from tests.cluster.layout import REGISTRY
from tests.support.certificates import new_private_key

FOLDER: Final = Path(__file__).parent
HARD: Final = FOLDER / "hard"
"""The hard set: a folder for each half, with the same folders as `FOLDER`."""
AT_ONCE: Final = FOLDER / "at_once"
"""Questions that are asked two seconds after a definite fault began, or during a start."""
PRIVATE_KEY: Final = "<private-key>"
"""Replaced by a new private key, one line with escaped line ends. Write it in double quotes."""
Expectation: TypeAlias = Literal["faults", "healthy"]
Places: TypeAlias = Mapping[str, str]
"""Maps the alias of a namespace, or `run`, to its name on the cluster."""


class Strict(BaseModel):
    """Base of all models; refuses unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Target(Strict):
    """An object that is expected, or that must not be a culprit.

    `name` may have wildcards. Without a namespace, the first one counts; an empty namespace means a cluster-wide
    object.
    """

    kind: str
    name: str
    namespace: str | None = None

    def matches(self, found: ObjectRef, places: Places) -> bool:
        """Whether this is the given object."""
        namespace = next(iter(places.values())) if self.namespace is None else places.get(self.namespace, "")
        name = replace_placeholders(self.name, places)
        return (self.kind, namespace) == (found.kind, found.namespace) and fnmatchcase(found.name, name)

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class Expected(Strict):
    """One incident. `culprit` lists objects that may be changed or created; any of them is correct.

    All of `evidence` must be mentioned. A list inside it needs only one of its members.
    """

    culprit: tuple[Target, ...] = Field(min_length=1)
    evidence: tuple[str | tuple[str, ...], ...] = Field(min_length=1)


class ObjectCondition(Strict):
    """At least `count` objects match, or none with `absent`. `that` is a jq expression; see `conditions.LIBRARY`."""

    kind: str
    name: str = "*"
    that: str = "true"
    count: int = 1
    absent: bool = False
    namespace: str | None = None


class LogCondition(Strict):
    """A container of one of these pods has logged this, in its current or previous instance."""

    log: str
    pod: str
    container: str = ""
    namespace: str | None = None


class ReadyCondition(Strict):
    """The latest version of these Deployments, StatefulSets or DaemonSets is complete and available."""

    ready: tuple[str, ...]
    namespace: str | None = None


class Pause(Strict):
    """Waits for a time without observing anything."""

    seconds: float


Condition: TypeAlias = ObjectCondition | LogCondition | ReadyCondition | Pause


class UseStep(Strict):
    """Apply `parts/<part>.yaml`."""

    step: Literal["use"]
    parts: tuple[str, ...]
    namespace: str | None = None


class WaitStep(Strict):
    """Wait for every condition, in order."""

    step: Literal["wait"]
    until: tuple[Condition, ...]


class ReadyStep(Strict):
    """Wait until these workloads are complete and available."""

    step: Literal["ready"]
    names: tuple[str, ...]
    namespace: str | None = None


class PatchStep(Strict):
    """Change an object. Strategic: lists of containers, variables, ports, ... are merged by their key."""

    step: Literal["patch"]
    kind: str
    name: str
    change: dict[str, JsonValue]
    how: Literal["strategic", "merge"] = "strategic"
    subresource: str = ""
    api_version: str = ""
    namespace: str | None = None


class DeleteStep(Strict):
    """Delete an object without waiting for its end."""

    step: Literal["delete"]
    kind: str
    name: str
    namespace: str | None = None


Step: TypeAlias = UseStep | WaitStep | ReadyStep | PatchStep | DeleteStep
_STEP: Final[TypeAdapter[Step]] = TypeAdapter(Annotated[Step, Field(discriminator="step")])


class Header(Strict):
    """The first document. `blind`: written by someone who had not seen the rules.

    `shows` proves that the fault, or the noise, is present. `room` is the number of pods that must fit on the node.
    `scan` are the namespaces of the scan, all by default; unless `narrow`, all are scanned a second time. Healthy
    scenarios have no incident that is more severe than `tolerated`. Scenarios of the hard set have a `question`, and
    `namespace` says whether it is asked with `--namespace`. All of their images exist but `missing_images`. The answer
    about a healthy state must have the words of `says`.
    """

    title: str
    blind: bool
    namespaces: tuple[str, ...] = ("shop",)
    scan: tuple[str, ...] = ()
    narrow: bool = False
    tolerated: Literal["info", "warning"] = "info"
    room: int = 3
    deadline_seconds: float = 150
    shows: tuple[Condition, ...] = Field(min_length=1)
    expected: tuple[Expected, ...] = ()
    innocent: tuple[Target, ...] = ()
    note: str = ""
    question: str = ""
    namespace: bool = False
    missing_images: tuple[str, ...] = ()
    says: tuple[str, ...] = ()


@dataclass(frozen=True)
class Scenario:
    """One file. Scenarios from the same file are equal."""

    path: Path

    @property
    def name(self) -> str:
        """Unique among all scenarios."""
        return self.path.stem

    @property
    def expectation(self) -> Expectation:
        """The kind of scenario, from its folder."""
        return "faults" if self.path.parent.name == "faults" else "healthy"

    @cached_property
    def header(self) -> Header:
        """The expectations, with placeholders."""
        first = next(iter(yaml.safe_load_all(self.path.read_text(encoding="utf-8"))))
        return Header.model_validate(first)

    @property
    def scanned(self) -> tuple[str, ...]:
        """Aliases of the namespaces of the scan."""
        return self.header.scan or self.header.namespaces

    def conditions(self, places: Places) -> tuple[Condition, ...]:
        """The conditions of the header, with real names."""
        text = replace_placeholders(self.path.read_text(encoding="utf-8"), places)
        return Header.model_validate(next(iter(yaml.safe_load_all(text)))).shows

    @property
    def images(self) -> frozenset[str]:
        """The images of the registry that the scenario expects."""
        named = re.findall(rf"\b{re.escape(REGISTRY)}/[\w./-]+:[\w.-]+", self.path.read_text(encoding="utf-8"))
        return frozenset(named) - set(self.header.missing_images)

    def steps(self, places: Places) -> Iterator[Step | JsonObject]:
        """The steps and manifests with real names, in the order of the file."""
        text = replace_placeholders(self.path.read_text(encoding="utf-8"), places)
        if PRIVATE_KEY in text:
            text = text.replace(PRIVATE_KEY, new_private_key().replace("\n", "\\n"))
        for document in list(yaml.safe_load_all(text))[1:]:
            yield _STEP.validate_python(document) if "step" in document else document


def replace_placeholders(text: str, places: Places) -> str:
    """Replaces `<alias>` with real names."""
    for alias, name in places.items():
        text = text.replace(f"<{alias}>", name)
    return text


def part_manifests(part: str, places: Places) -> tuple[JsonObject, ...]:
    """A part of the healthy shop that several scenarios use."""
    text = (FOLDER / "parts" / f"{part}.yaml").read_text(encoding="utf-8")
    return tuple(yaml.safe_load_all(replace_placeholders(text, places)))


def load_scenarios(*names: str, folder: Path = FOLDER) -> tuple[Scenario, ...]:
    """All scenarios, or those with names that match a pattern; ValueError when a pattern matches none."""
    found = tuple(Scenario(path) for part in ("faults", "healthy") for path in sorted((folder / part).glob("*.yaml")))
    if not names:
        return found
    for name in names:
        if not any(fnmatchcase(each.name, name) for each in found):
            raise ValueError(f"no scenario is called {name!r}: see the file names in {folder}")
    return tuple(each for each in found if any(fnmatchcase(each.name, name) for name in names))
