"""A real Jaeger with the traces of the shop, and where its exchanges are recorded."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.cluster.layout import Layout
from tests.services import go_programs
from tests.services.fixtures import needed_programs
from tests.services.tracing import jaeger
from tests.toolsets.traces.shop import otlp, requests

if TYPE_CHECKING:
    from collections.abc import Iterator

RECORDED: Final = Path(__file__).with_name("jaeger.json")
RECORDED_FOR_DOCS: Final = Path(__file__).with_name("jaeger_docs.json")
JAEGER: Final = f"Jaeger {go_programs.JAEGER.version.removeprefix('v')}"


@contextmanager
def shop_in_jaeger() -> Iterator[str]:
    """Yield the URL of a Jaeger that has the traces. The first call builds it."""
    with needed_programs(), jaeger(Layout.from_environment()) as server:
        for identity, began, sent in requests():
            server.send(otlp(identity, began, sent))
        yield server.url
