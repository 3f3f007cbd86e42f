"""Requests to the Kubernetes API that were denied, as the API server words them in logs and events. Called by rules."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.values.findings import ObjectRef

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holmes.kubernetes.cluster_object import ClusterObject

_QUOTE: Final = r"\\{0,3}\""
_DENIED: Final = re.compile(
    rf"(?:[\w.-]{{1,80}} {_QUOTE}(?P<name>[^\"\\]{{1,253}}){_QUOTE} )?is forbidden: "
    rf"User {_QUOTE}system:serviceaccount:(?P<account_namespace>[^:\"\\]{{1,63}}):(?P<account>[^\"\\]{{1,253}}){_QUOTE}"
    rf" cannot (?P<verb>[\w*-]{{1,40}}) resource {_QUOTE}(?P<resource>[^\"\\]{{1,120}}){_QUOTE}"
    rf" in API group {_QUOTE}(?P<group>[^\"\\]{{0,253}}){_QUOTE}"
    rf"(?: in the namespace {_QUOTE}(?P<namespace>[^\"\\]{{1,63}}){_QUOTE})?",
    re.IGNORECASE,
)
_MARK: Final = "is forbidden: User"
_NO_TOKEN: Final = re.compile(
    r"secrets/kubernetes\.io/serviceaccount(?:/token)?\b.{0,80}no such file|unable to load in-cluster config"
    r"|no such file.{0,80}secrets/kubernetes\.io/serviceaccount",
    re.IGNORECASE,
)
_LONGEST_LINE_CHARACTERS: Final = 4_000


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Denial:
    """A denied request of a ServiceAccount. `namespace` is empty for one about the whole cluster; so may be `name`."""

    account_namespace: str
    account: str
    verb: str
    resource: str
    group: str
    namespace: str
    name: str

    @property
    def service_account(self) -> ObjectRef:
        """Who asked."""
        return ObjectRef(kind="ServiceAccount", namespace=self.account_namespace, name=self.account)

    @property
    def request(self) -> str:
        """What was asked for: `list pods in namespace shop`."""
        resource = f"{self.resource}.{self.group}" if self.group else self.resource
        return (
            f"{self.verb} {resource} {f'in namespace {self.namespace}' if self.namespace else 'in the whole cluster'}"
        )


def denials_in(text: str) -> Iterator[tuple[Denial, str]]:
    """Every denied request that a text tells of, with the line."""
    if _MARK not in text:
        return
    for line in text.splitlines():
        for found in _DENIED.finditer(line[:_LONGEST_LINE_CHARACTERS]) if _MARK in line else ():
            fields = {key: value or "" for key, value in found.groupdict().items()}
            yield Denial(**fields), line.strip()


def misses_token(line: str) -> bool:
    """Whether an application complains that it has no token for the Kubernetes API."""
    return _NO_TOKEN.search(line[:_LONGEST_LINE_CHARACTERS]) is not None


def accounts_blamed(line: str, pod: ClusterObject) -> tuple[ObjectRef, ...]:
    """The ServiceAccounts whose rights or tokens a line of the pod's log complains about."""
    accounts = [denial.service_account for denial, _ in denials_in(line)]
    if misses_token(line):
        name = pod.text("spec", "serviceAccountName") or "default"
        accounts.append(ObjectRef(kind="ServiceAccount", namespace=pod.namespace, name=name))
    return tuple(dict.fromkeys(accounts))
