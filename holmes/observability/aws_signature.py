"""Signs requests to a source in AWS with Signature Version 4.

The credentials are found as by the AWS CLI: in variables, files, SSO, or the roles of a pod or node. They are read in a
daemon thread, because a role server that does not answer must not delay requests or the end of the process.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import threading
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from holmes.observability.access import LoginFailedError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

_LONGEST_SECONDS: Final = 10.0
_CONNECT_SECONDS: Final = 2
_READ_SECONDS: Final = 3
_ATTEMPTS: Final = 2
_ADVICE: Final = "check aws.profile and its role"


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsScope:
    """Where signatures are valid: a region and a service, and the profile whose credentials sign."""

    region: str
    service: str
    profile: str | None = None


@lru_cache(maxsize=64)
def aws_signature(scope: AwsScope) -> AwsSignature:
    """Return the login that all toolsets with the same scope share, so that roles are assumed once."""
    return AwsSignature(scope)


class AwsSignature:
    """Adds a signature. Credentials with an end are renewed by botocore, so a rejected request is not repeated."""

    def __init__(self, scope: AwsScope) -> None:
        self._scope = scope
        self._credentials: Any = None
        self._lock = threading.Lock()
        self._reading: Future[Any] | None = None

    async def sign(self, request: httpx.Request) -> None:
        # AWS reads a plus as itself, and httpx writes spaces of a query so.
        request.url = request.url.copy_with(query=request.url.query.replace(b"+", b"%20") or None)
        try:
            async with asyncio.timeout(_LONGEST_SECONDS):
                credentials = await asyncio.wrap_future(self._started())
        except TimeoutError as error:
            raise LoginFailedError(f"no AWS credentials within {_LONGEST_SECONDS:g} s", _ADVICE) from error
        with _failures():
            _add_signature(request, self._scope, credentials)

    def renews(self, request: httpx.Request) -> bool:  # noqa: ARG002  part of the protocol
        return False

    def _started(self) -> Future[Any]:
        """Return the credentials that are being read. All requests wait for the same thread, also later ones."""
        with self._lock:
            if self._reading is None or self._reading.done():
                self._reading = Future()
                self._reading.set_running_or_notify_cancel()
                threading.Thread(target=self._read, args=(self._reading,), name="aws-credentials", daemon=True).start()
            return self._reading

    def _read(self, reading: Future[Any]) -> None:
        try:
            with _failures():
                reading.set_result(self._found())
        except LoginFailedError as error:
            reading.set_exception(error)
        finally:
            if not reading.done():
                reading.set_exception(LoginFailedError("no AWS credentials can be read (unexpected error)", _ADVICE))

    def _found(self) -> Any:  # noqa: ANN401  botocore has no types
        """Return credentials that do not change. Raises errors of botocore and of files."""
        if self._credentials is None:
            from botocore.config import Config
            from botocore.session import Session

            logging.getLogger("botocore").setLevel(logging.CRITICAL)  # each failure is the error of a source
            session = Session(profile=self._scope.profile)
            limits = Config(
                connect_timeout=_CONNECT_SECONDS, read_timeout=_READ_SECONDS, retries={"total_max_attempts": _ATTEMPTS}
            )
            session.set_default_client_config(limits)
            session.set_config_variable("metadata_service_timeout", _CONNECT_SECONDS)
            session.set_config_variable("metadata_service_num_attempts", _ATTEMPTS)
            self._credentials = session.get_credentials()
        if self._credentials is None:
            raise LoginFailedError("no AWS credentials are found", "set AWS_ACCESS_KEY_ID, aws.profile or a role")
        return self._credentials.get_frozen_credentials()


@contextmanager
def _failures() -> Iterator[None]:
    """Raise each failure as `LoginFailedError`. Messages that can repeat a secret are reduced to their kind."""
    try:
        import_module("botocore.auth")
        from botocore.exceptions import BotoCoreError, ClientError
    except ImportError as error:
        raise LoginFailedError("aws requires botocore, which is not installed", "pip install botocore") from error
    try:
        yield
    except (BotoCoreError, ClientError, OSError) as error:
        reason = " ".join(str(error).split())[:200]
        raise LoginFailedError(f"no AWS credentials can be read ({reason})", _ADVICE) from error
    except (ValueError, LookupError, RuntimeError) as error:
        raise LoginFailedError(f"no AWS credentials can be read ({type(error).__name__})", _ADVICE) from error


def _add_signature(request: httpx.Request, scope: AwsScope, credentials: Any) -> None:  # noqa: ANN401  of botocore
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest

    # Proxies can change other headers, so they are not signed. OpenSearch Serverless requires the hash as a header.
    signed = {"X-Amz-Content-SHA256": hashlib.sha256(request.content).hexdigest()}
    if kind := request.headers.get("Content-Type"):
        signed["Content-Type"] = kind
    whole = AWSRequest(method=request.method, url=str(request.url), data=request.content, headers=signed)
    SigV4Auth(credentials, scope.service, scope.region).add_auth(whole)
    request.headers.update(dict(whole.headers.items()))
