"""Headers whose values come from the HTTP request that a run answers: `{{ request_context.headers['X-Tenant'] }}`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holmes.redaction.names import strength_of
from holmes.redaction.redactor import without_known_keys
from holmes.toolsets.mcp.faults import fault
from holmes.values.request_headers import is_withheld

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holmes.toolsets.mcp.servers import McpServer
    from holmes.values.request_headers import RequestHeaders

_CONTEXT: Final = "request_context"
_EXAMPLE: Final = "{{ request_context.headers['X-Tenant'] }}"
_ADVICE: Final = "let the client of the HTTP API send it"
_HEADERS: Final = r"""request_context(?:\.headers|\[(?:"headers"|'headers')\])"""
_BY_KEY: Final = r"""\[\s*["'](?P<key>[\w.!#$%&*+^|~-]+)["']\s*\]"""
_BY_GET: Final = r"""\.get\(\s*["'](?P<got>[\w.!#$%&*+^|~-]+)["']\s*(?:,\s*["'](?P<other>[^"'{}]*)["']\s*)?\)"""
_BY_ATTRIBUTE: Final = r"\.(?P<attribute>[A-Za-z]\w*)"
_FILTER: Final = r"""\|\s*d(?:efault)?\(\s*["'](?P<default>[^"'{}]*)["']\s*(?:,\s*[Tt]rue\s*)?\)"""
_REFERENCE: Final = re.compile(
    rf"\{{\{{-?\s*{_HEADERS}(?:{_BY_KEY}|{_BY_GET}|{_BY_ATTRIBUTE})\s*(?:{_FILTER}\s*)?-?\}}\}}", re.ASCII
)


def uses_request(template: str) -> bool:
    """Return whether the value of a header depends on the request."""
    return _CONTEXT in template


def why_wrong(template: str) -> str | None:
    """Return why a template that `uses_request` is not valid, or None if it is."""
    names = [_name(found) for found in _REFERENCE.finditer(template)]
    if _CONTEXT in _REFERENCE.sub("", template):
        return f"uses {_CONTEXT} in a form that is not supported; write {_EXAMPLE}"
    withheld = next(filter(is_withheld, names), None)
    if withheld is not None:
        return f"passes {withheld} on, which may hold the key of Holmes; let clients send another header"
    return None


def default_headers(templates: Mapping[str, str]) -> Mapping[str, str]:
    """Return the headers without a request, as far as their templates have defaults."""
    filled = {name: _filled(template, None) for name, template in templates.items()}
    return {name: value for name, value in filled.items() if value and not isinstance(value, _Missing)}


def passed_headers(server: McpServer, templates: Mapping[str, str], request: RequestHeaders | None) -> dict[str, str]:
    """Return the headers with the values that `request` has.

    Raises `ToolError` if it lacks one for which the template has no default.
    """
    headers: dict[str, str] = {}
    for name, template in templates.items():
        value = _filled(template, request)
        if isinstance(value, _Missing):
            why = "this run answers none" if request is None else "the request has none"
            raise fault(server, f"it requires the header {value.name} of an HTTP request, and {why}", _ADVICE)
        if not (value.isascii() and value.isprintable()):
            raise fault(server, f"the header {name} would not be plain ASCII", "let clients encode its value")
        if value:
            headers[name] = value
    return headers


def without_passed(text: str, headers: Mapping[str, str]) -> str:
    """Mask the values of `headers` in a text of the server, if their names tell that they are secrets."""
    secrets = [value for name, value in headers.items() if strength_of(name) != "none"]
    return without_known_keys(text, [word for value in secrets for word in (value, *value.split())])


@dataclass(frozen=True, slots=True)
class _Missing:
    """A header of the request that a template needs."""

    name: str


def _filled(template: str, request: RequestHeaders | None) -> str | _Missing:
    parts: list[str] = []
    end = 0
    for found in _REFERENCE.finditer(template):
        value = request.get(_name(found)) if request is not None else None
        if not value:
            value = found["default"] if found["other"] is None else found["other"]
        if value is None:
            return _Missing(_name(found))
        parts += template[end : found.start()], value
        end = found.end()
    return "".join((*parts, template[end:]))


def _name(found: re.Match[str]) -> str:
    return found["key"] or found["got"] or found["attribute"]
