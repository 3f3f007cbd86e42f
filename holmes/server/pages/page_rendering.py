"""Renders templates, serves static files, and formats times, costs and untrusted text.

Every value is escaped. The content security policy (`holmes.server.security`) forbids inline styles and scripts.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from fastapi.responses import Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from holmes.evidence import without_markers
from holmes.values.texts import shortened
from holmes.values.verdicts import VERDICT_WORDS

if TYPE_CHECKING:
    from datetime import datetime

    from holmes.values.stats import RequestStats
    from holmes.values.verdicts import VerdictKind

_MINUTE = 60
_HOUR = 3_600
_DAY = 86_400
_OLD_DAYS = 60
_COLOUR_SEQUENCE = re.compile(r"\x1b\[[0-9;:]*[A-Za-z]")
_UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
_CONTROL_PICTURES = 0x2400
_LEVELS = {
    **dict.fromkeys(("critical", "page", "emergency", "fatal", "disaster", "high"), "critical"),
    **dict.fromkeys(("warning", "warn", "error", "major", "medium"), "warning"),
    **dict.fromkeys(("info", "information", "notice", "minor", "low", "none"), "info"),
}
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def age(at: datetime, now: datetime) -> str:
    """Format the time since `at`, for example `40 s`, `12 min`, `3 h` or `2 d`.

    After 60 days, format the date instead.
    """
    seconds = max(0.0, (now - at).total_seconds())
    if seconds < _MINUTE:
        return f"{seconds:.0f} s"
    if seconds < _HOUR:
        return f"{seconds // _MINUTE:.0f} min"
    if seconds < _DAY:
        return f"{seconds // _HOUR:.0f} h"
    return f"{seconds // _DAY:.0f} d" if seconds < _OLD_DAYS * _DAY else f"{at:%Y-%m-%d}"


def duration(seconds: float) -> str:
    """Format a duration, for example `0.4 s`, `42 s`, `3 min 5 s` or `1 h 12 min`."""
    seconds = max(0.0, seconds)
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return f"{whole // _MINUTE} min {whole % _MINUTE} s"
    return f"{whole // _HOUR} h {whole % _HOUR // _MINUTE} min"


def clock_offset(seconds: float) -> str:
    """Format the time since the start, for example `0:42`, `12:03` or `1:02:03`."""
    whole = max(0, int(seconds))
    minutes, rest = divmod(whole, _MINUTE)
    hours, minutes = divmod(minutes, _MINUTE)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def money(dollars: float) -> str:
    """Format US dollars with two or three significant digits, for example `$0.004`, `$0.12` or `$3.40`."""
    if dollars <= 0:
        return "$0"
    if dollars < 0.0005:
        return "<$0.001"
    if dollars < 0.1:
        return f"${dollars:.3f}"
    return f"${dollars:.2f}" if dollars < 1_000 else f"${dollars:,.0f}"


def cost_of(stats: RequestStats) -> str:
    """Format the cost, with `≥` if some prices are unknown, or `~` if tokens were estimated."""
    if not stats.calls and not stats.cost:
        return "–"  # noqa: RUF001  the dash of an empty cell
    sign = "≥ " if stats.unpriced_calls else "~" if stats.estimated else ""
    return sign + money(stats.cost)


def count(number: float) -> str:
    """Format a number, for example `940`, `54k` or `1.2M`."""
    if number < 1_000:
        return f"{number:.0f}"
    return f"{number / 1_000:.0f}k" if number < 999_500 else f"{number / 1_000_000:.1f}M"


def size(size_bytes: int) -> str:
    """Format a size, for example `940 B`, `12 kB` or `3.4 MB`."""
    if size_bytes < 1_000:
        return f"{size_bytes} B"
    return f"{size_bytes / 1_000:.0f} kB" if size_bytes < 999_500 else f"{size_bytes / 1_000_000:.1f} MB"


def stamp(at: datetime) -> str:
    """Format the date and time in UTC."""
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


def visible(text: str) -> str:
    """Make hidden characters in untrusted text visible.

    Terminal colour sequences are removed. Other control characters, characters that change the writing direction, and
    lone surrogates become visible symbols. Newlines and tabs are kept.
    """
    if text.isascii() and text.isprintable():
        return text
    return _UNSEEN.sub(_picture, _COLOUR_SEQUENCE.sub("", text.replace("\r\n", "\n")))


def one_line(text: str, limit: int = 300) -> str:
    """Join untrusted text into one line of at most `limit` characters."""
    return shortened(" ".join(visible(shortened(text, 4 * limit, mark="")).split()), limit)


def without_citations(text: str) -> str:
    """Remove citation markers for text without links. Notes about unchecked citations are kept."""
    return without_markers(text)


def verdict_words(verdict: VerdictKind) -> str:
    """Return the heading of an answer with this verdict, for example `Cause not found`."""
    return VERDICT_WORDS[verdict]


def severity_level(severity: str | None) -> str:
    """Return the colour class of a severity: `critical`, `warning`, `info` or `other`."""
    return _LEVELS.get((severity or "").strip().lower(), "other")


def web_address(value: str | None) -> str | None:
    """Return `value` if it is an absolute HTTP URL, else None."""
    if value is None or len(value) > 2_000 or not value.isprintable() or " " in value:
        return None
    try:
        parts = urlsplit(value)
    except ValueError:
        return None
    return value if parts.scheme in {"http", "https"} and parts.netloc else None


def _picture(match: re.Match[str]) -> str:
    code = ord(match[0])
    return chr(_CONTROL_PICTURES + code) if code < 0x20 else "\N{SYMBOL FOR DELETE}" if code == 0x7F else _REPLACEMENT


# This header overrides the `no-referrer` of `SecurityMiddleware`, which sets the other headers. With `no-referrer`,
# browsers would send `Origin: null` in forms.
PAGE_HEADERS: Final = {"Referrer-Policy": "same-origin"}
_STATIC_TYPES: Final = {
    "holmes.css": "text/css; charset=utf-8",
    "holmes.js": "text/javascript; charset=utf-8",
    "holmes.svg": "image/svg+xml",
}
_FOLDER: Final = Path(__file__).parent


def render(template: str, **values: object) -> Response:
    """Render a page or a part of a page. Lone surrogates, which JSON allows, become question marks."""
    html = _environment().get_template(template).render(values)
    return Response(html.encode("utf-8", "replace"), headers=PAGE_HEADERS, media_type="text/html; charset=utf-8")


def compile_templates() -> None:
    """Compile all templates, so that the first request is fast."""
    environment = _environment()
    for name in environment.list_templates():
        environment.get_template(name)


def static_file(name: str) -> Response | None:
    """Return a static file, or None for an unknown name. Browsers may cache it, because its URL contains a version."""
    if name not in _STATIC_TYPES:
        return None
    headers = {"Cache-Control": "public, max-age=31536000, immutable"}
    return Response(_content(name), headers=headers, media_type=_STATIC_TYPES[name])


def static_address(name: str) -> str:
    """Return the URL of a static file, with a version that changes with the content."""
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
        "verdict_words",
        "visible",
        "web_address",
        "without_citations",
    ):
        environment.filters[name] = globals()[name]
    return environment
