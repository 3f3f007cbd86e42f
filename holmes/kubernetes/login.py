"""A context with its credentials, without any connection: what can be kept between calls and costs nothing to keep.

Called by `holmes.kubernetes.client`, and by toolsets that connect once per call but must not run an exec plugin each
time.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holmes.kubernetes.credentials import CredentialSource
from holmes.kubernetes.kubeconfig import SERVICE_ACCOUNT, load_access

if TYPE_CHECKING:
    from pathlib import Path

    from holmes.kubernetes.access import ClusterAccess
    from holmes.values.environment import Environment


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterLogin:
    """One context and the source of its credentials."""

    access: ClusterAccess
    credentials: CredentialSource
    environment: Environment

    @classmethod
    async def load(
        cls, environment: Environment, *, previous: ClusterLogin | None = None, service_account: Path = SERVICE_ACCOUNT
    ) -> ClusterLogin:
        """Read the configuration; `previous` is kept with its credentials when nothing changed.

        Raises `ClusterUnreachable` when there is none, `ConfigError` when it is wrong.
        """
        access = await asyncio.to_thread(load_access, environment, service_account=service_account)
        if previous is not None and previous.access == access and previous.environment == environment:
            return previous
        return cls(access=access, credentials=CredentialSource(access, environment), environment=environment)
