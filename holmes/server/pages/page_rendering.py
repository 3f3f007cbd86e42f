"""Templates of the page and the headers of what they make.

Every value is escaped. The content policy (`holmes.server.security`) allows nothing from elsewhere and nothing inline,
so no template may have a style or a script in it.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Final

from fastapi.responses import Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from holmes.server.pages import page_format

# The other headers are the doorkeeper's. With its `no-referrer` browsers would send `Origin: null` with the forms, and
# the check of the origin refuse them.
PAGE_HEADERS: Final = {"Referrer-Policy": "same-origin"}
_STATIC_TYPES: Final = {
    "holmes.css": "text/css; charset=utf-8",
    "holmes.js": "text/javascript; charset=utf-8",
    "holmes.svg": "image/svg+xml",
}
_FOLDER: Final = Path(__file__).parent


def render(template: str, **values: object) -> Response:
    """A page or a part of one. Lone halves of characters, which JSON may hold, become question marks."""
    html = _environment().get_template(template).render(values)
    return Response(html.encode("utf-8", "replace"), headers=PAGE_HEADERS, media_type="text/html; charset=utf-8")


def compile_templates() -> None:
    """Compile all templates, so that the first reader need not wait for it."""
    environment = _environment()
    for name in environment.list_templates():
        environment.get_template(name)


def static_file(name: str) -> Response | None:
    """A file of the page; None when there is none of this name. Its address has its version, so it may be kept."""
    if name not in _STATIC_TYPES:
        return None
    headers = {"Cache-Control": "public, max-age=31536000, immutable"}
    return Response(_content(name), headers=headers, media_type=_STATIC_TYPES[name])


def static_address(name: str) -> str:
    """Where a file of the page lies, with its version."""
    return f"/static/{name}?v={hashlib.sha256(_content(name)).hexdigest()[:12]}"


@cache
def _content(name: str) -> bytes:
    return (_FOLDER / "static" / name).read_bytes()


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.globals["static"] = cache(static_address)
    for name in (
        "age",
        "clock_offset",
        "cost_of",
        "count",
        "duration",
        "money",
        "one_line",
        "severity_level",
        "size",
        "stamp",
        "visible",
        "web_address",
        "without_citations",
    ):
        environment.filters[name] = getattr(page_format, name)
    return environment
