"""The subject of a question: the objects, kinds and namespaces that it is about. `search.py` finds it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from holmes.values.texts import plural

if TYPE_CHECKING:
    from holmes.kubernetes.cluster_object import ClusterObject
    from holmes.triage.question import Question
    from holmes.values.findings import ObjectRef


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """A name that no object has. `kind` and `namespace` are empty if the question does not name them.

    The kind `place` means an environment or another cluster, of which this cluster knows nothing.
    """

    name: str
    kind: str = ""
    namespace: str = ""
    nearest: tuple[ObjectRef, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """The objects that one name of the question means, the most likely first. `name` is as written in the question.

    If no object has this name, `match` states what the objects are: those whose names contain it (`part`), those with
    the most similar name (`similar`), or the workload of a pod that no longer exists (`gone`).
    """

    name: str
    objects: tuple[ClusterObject, ...]
    match: Literal["exact", "part", "similar", "gone"] = "exact"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The subject of a question.

    Without names, the question is about all objects of `kinds`, or about everything in `namespaces`. Empty `namespaces`
    means the whole cluster. `elsewhere` contains objects with a named name in namespaces that were not asked about.
    `values` contains words that are values of labels or annotations, `images` references to images, and `unknown` words
    without a known meaning.
    `excluded` and `excluded_namespaces` are what the question leaves out: "everything except …".
    """

    named: tuple[Named, ...] = ()
    namespaces: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    missing: tuple[Missing, ...] = ()
    elsewhere: tuple[ObjectRef, ...] = ()
    values: tuple[str, ...] = ()
    images: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    excluded: tuple[ClusterObject, ...] = ()
    excluded_namespaces: tuple[str, ...] = ()

    @property
    def objects(self) -> tuple[ClusterObject, ...]:
        """All named objects."""
        return tuple(dict.fromkeys(each for named in self.named for each in named.objects))

    @property
    def place(self) -> str:
        """The scope as a phrase: `in namespace shop`."""
        left_out = f" except {', '.join(self.excluded_namespaces)}" if self.excluded_namespaces else ""
        if not self.namespaces:
            return f"in the whole cluster{left_out}"
        return f"in namespace{'s' if len(self.namespaces) > 1 else ''} {', '.join(self.namespaces)}{left_out}"

    def without_names(self, text: str) -> str:
        """Return a question with the names of its objects and namespaces blanked."""
        for name in sorted((*(each.name for each in self.named), *self.namespaces), key=len, reverse=True):
            text = text.replace(name, " " * len(name))
        return text

    def contains(self, each: ClusterObject) -> bool:
        """Return whether an object is in the namespaces of the subject."""
        return self.holds(each.namespace)

    def holds(self, namespace: str) -> bool:
        """Return whether a namespace belongs to the subject."""
        return (not self.namespaces or namespace in self.namespaces) and namespace not in self.excluded_namespaces


def _members(kind: str) -> str:
    """Return the plural of a kind without its group, and all kinds of a group as its objects."""
    name, _, group = kind.partition(".")
    return f"objects of {group}" if name == "*" else plural(name)


def narrowing(subject: Subject, question: Question) -> str:
    """Return a clause with the kinds and labels that narrow a question, or an empty string."""
    kinds = dict.fromkeys(_members(kind) for kind in subject.kinds if kind != "Namespace")
    labels = " and ".join(map(str, question.labels))
    among = f" among {', '.join(kinds) or 'objects'}{f' with {labels}' if labels else ''}" if kinds or labels else ""
    without = ", ".join(str(each.ref) for each in subject.excluded[:3])
    return f"{among}, without {without}" if without else among
