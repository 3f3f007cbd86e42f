"""Fixtures of the tests of destinations."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator

import httpx
import pytest


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    """An impatient client; it knows no authorities, because reading them takes long."""
    async with httpx.AsyncClient(timeout=0.5, verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)) as opened:
        yield opened
