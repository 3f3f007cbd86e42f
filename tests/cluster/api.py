"""The few questions that `supervisor` asks the API server while it starts.

Not kubectl: asked ten times a second, that would take most of one of the two processors.
"""

from __future__ import annotations

import http.client
import ssl
from typing import TYPE_CHECKING, Final

from tests.cluster.credentials import admin_token
from tests.cluster.layout import INNER_ADDRESS

if TYPE_CHECKING:
    from tests.cluster.layout import Layout

TIMEOUT_SECONDS: Final = 5


class ApiServer:
    """Reads paths of the API server, from within the cluster, as its administrator."""

    def __init__(self, layout: Layout) -> None:
        self._headers = {"Authorization": f"Bearer {admin_token(layout)}"}
        self._tls = ssl.create_default_context(cafile=str(layout.run / "pki" / "ca.crt"))

    def get(self, path: str) -> str:
        """Return what lies at `path`, or an empty text as long as there is no good answer."""
        connection = http.client.HTTPSConnection(*INNER_ADDRESS, timeout=TIMEOUT_SECONDS, context=self._tls)
        try:
            connection.request("GET", path, headers=self._headers)
            response = connection.getresponse()
            return response.read().decode() if response.status == http.HTTPStatus.OK else ""
        except (http.client.HTTPException, OSError):
            return ""
        finally:
            connection.close()
