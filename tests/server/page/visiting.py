"""A browser's view of the page, which fails for errors, violations of the policy and requests to elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, TypeAlias

from playwright.sync_api import Browser, Page, ViewportSize

from tests.server.page.serving import RunningServer

Scheme: TypeAlias = Literal["light", "dark"]
DESKTOP: ViewportSize = {"width": 1280, "height": 800}
PHONE: ViewportSize = {"width": 360, "height": 740}

TOO_WIDE = """() => {
  const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  if (wide <= 0) return "";
  const outside = [...document.querySelectorAll("body *")]
    .filter((e) => e.getBoundingClientRect().right > innerWidth + 1);
  return `${wide} px: ${outside.slice(0, 3).map((e) => e.outerHTML.slice(0, 100)).join(" | ")}`;
}"""
PALE_TEXT = """() => {
  const parse = (colour) => {
    const [r, g, b, a] = colour.match(/[\\d.]+/g).map(Number);
    return { r, g, b, a: a === undefined ? 1 : a };
  };
  const luminance = ({ r, g, b }) => [r, g, b]
    .map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const colour = parse(getComputedStyle(e).backgroundColor);
      if (colour.a === 1) return colour;
    }
    return { r: 255, g: 255, b: 255 };
  };
  const pale = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || !element.checkVisibility()) continue;
    const style = getComputedStyle(element);
    const [light, dark] = [luminance(parse(style.color)), luminance(ground(element))].sort((x, y) => y - x);
    const ratio = (light + 0.05) / (dark + 0.05);
    if (ratio < 4.5) pale.push(`${ratio.toFixed(2)}: ${element.outerHTML.slice(0, 100)}`);
  }
  return pale;
}"""


@contextmanager
def visit(
    browser: Browser,
    server: RunningServer,
    *,
    viewport: ViewportSize = DESKTOP,
    scheme: Scheme = "light",
    javascript: bool = True,
) -> Iterator[Page]:
    """A page of a fresh context. On leaving: no error in the console, no foreign request, no script of others."""
    context = browser.new_context(
        base_url=server.url,
        viewport=viewport,
        color_scheme=scheme,
        java_script_enabled=javascript,
        reduced_motion="reduce",
    )
    context.set_default_timeout(10_000)
    page = context.new_page()
    troubles: list[str] = []
    page.on("console", lambda message: troubles.append(message.text) if message.type in {"error", "warning"} else None)
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("request", lambda request: None if request.url.startswith(server.url) else troubles.append(request.url))
    try:
        yield page
        if javascript:
            assert page.evaluate("window.__owned") is None, "a text of the cluster ran as a script"
        assert troubles == []
    finally:
        context.close()
