"""Reads CoreDNS' Corefile as far as diagnosis needs it: server blocks with their directives. Called by DNS rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_NAMES: Final = (
    "acl any auto autopath azure bind bufsize cache cancel chaos clouddns debug dns64 dnssec dnstap erratic errors "
    "etcd file forward geoip grpc grpc_server header health hosts import k8s_external k8s_gateway kubernetes "
    "kubernetai loadbalance local log loop metadata minimal multisocket nomad nsid on pprof prometheus proxy quic "
    "ready records reload rewrite root route53 secondary sign template timeouts tls trace transfer tsig view "
    "whoami federation nodecache pdsql redisc unbound alternate fanout"
)
PLUGINS: Final = frozenset(_NAMES.split())
"""The directives of CoreDNS itself and of well-known additions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Directive:
    """A directive of a server block. `line` is as it was written, `inner` the lines of its own block."""

    name: str
    arguments: tuple[str, ...]
    line: str
    inner: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerBlock:
    """The zones of a block (`.:53`) and what stands in it."""

    zones: tuple[str, ...]
    directives: tuple[Directive, ...]

    def named(self, name: str) -> tuple[Directive, ...]:
        """The directives with this name."""
        return tuple(each for each in self.directives if each.name == name)


def server_blocks(corefile: str) -> tuple[ServerBlock, ...]:
    """The blocks of a Corefile; whatever cannot be understood is left out. Snippets `(name)` are blocks too."""
    blocks: list[ServerBlock] = []
    zones: tuple[str, ...] = ()
    directives: list[Directive] = []
    inner: list[str] = []
    depth = 0
    for raw in corefile.splitlines():
        line = raw.partition("#")[0].strip()
        if not line:
            continue
        words = tuple(word for word in line.replace("{", " { ").replace("}", " } ").split() if word not in "{}")
        if depth == 0 and words:
            zones, directives = words, []
        elif depth == 1 and words:
            directives.append(Directive(name=words[0], arguments=words[1:], line=line))
            inner = []
        elif depth > 1 and words:
            inner.append(line)
        depth += line.count("{") - line.count("}")
        if depth == 1 and inner and directives:
            last = directives[-1]
            directives[-1] = Directive(name=last.name, arguments=last.arguments, line=last.line, inner=tuple(inner))
            inner = []
        if depth <= 0 and zones:
            blocks.append(ServerBlock(zones=zones, directives=tuple(directives)))
            zones, depth = (), 0
    return tuple(blocks)
