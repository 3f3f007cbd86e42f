"""Finds the values in a question other than names: node ports, versions of nodes, and the beginnings of names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.values.expressions import expression

if TYPE_CHECKING:
    from collections.abc import Iterator

_NODE_PORT: Final = expression(r"(?<![\w.:=/-])3(?:0\d|1\d|2[0-7])\d\d(?![\w.:=/-])|(?<=host port )\d{2,5}\b")
VERSION: Final = expression(r"v?\d{1,3}(?:\.\d{1,4}){1,2}(?:[-+][\w.]+)?")
_VERSION_WORD: Final = expression(r"\bversion")
PREFIXED: Final = expression(
    r"\b(?:(?:start|begin)(?:s|ning|ting|nning)? (?:with|in)|(?:beginnen|beginnt|anfangen|anfangt|starten) (?:mit|auf)"
    r"|(?:empiez\w+|empec\w+|comien\w+|comenc\w+) (?:por|con|en)|commenc\w+ (?:par|avec)"
    r"|(?:with|mit|con|avec) (?:the |dem |el |le )?"
    r"(?:name )?(?:prefix|prefijo|prefixe|prafix))\s+[`'\"]?([a-z0-9][a-z0-9.-]*\*?)"
)
_PORT_WORD: Final = expression(r"\bports?\b|\bpuertos?\b")


def node_ports(text: str, *, about: bool) -> Iterator[str]:
    """Yield numbers in the range of node ports, and host ports, if the question is about a Service or a port."""
    yield from (match[0] for match in _NODE_PORT.finditer(text) if about or _PORT_WORD.search(text))


def versions_in(words: tuple[str, ...], text: str, *, nodes: bool) -> tuple[str, ...]:
    """Return the versions, if the question is about the kubelet or the version of nodes."""
    versioned = {"kubelet", "kubelets"} & {*words} or (nodes and _VERSION_WORD.search(text))
    return tuple(word for word in words if versioned and VERSION.fullmatch(word))
