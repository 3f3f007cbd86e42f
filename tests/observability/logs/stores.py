"""The sources of logs of the tests with the same lines: VictoriaLogs and OpenSearch, and the stand-in for Loki.

OpenSearch runs in the long form. The short form replays its responses from `opensearch.json`:
`HOLMES_RECORD=1 HOLMES_TESTS=long python -m pytest tests/observability/logs tests/toolsets/logs` records them again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal, TypeAlias, get_args

from tests.cluster.layout import Layout
from tests.observability.logs.records import Line, send_to_search_engine
from tests.services import log_stores
from tests.services.exchanges import served

Product: TypeAlias = Literal["victorialogs", "loki", "opensearch"]
PRODUCTS: Final[tuple[Product, ...]] = get_args(Product)
OPENSEARCH: Final = "OpenSearch 2.19.6"


@contextmanager
def opensearch_sources(recording: Path, lines: dict[str, list[Line]]) -> Iterator[str]:
    """Yield the URL of an OpenSearch with an index for each collector in `lines`."""

    @contextmanager
    def real() -> Iterator[str]:
        with log_stores.opensearch(Layout.from_environment()) as url:
            for collector, stored in lines.items():
                send_to_search_engine(url, f"logs-{collector}", stored, collector)
            yield url

    with served(recording, real=real, server=OPENSEARCH) as url:
        yield url
