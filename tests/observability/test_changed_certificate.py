"""A source that changes its certificate while a client is open gets no further request and no credentials."""

from __future__ import annotations

from pathlib import Path

import pytest

from holmes.observability.access import SourceAccess, TlsFiles, open_source
from holmes.values.errors import ToolError
from tests.observability.test_access import pem, serving
from tests.support.certificates import make_certificates


async def test_a_certificate_of_another_authority_ends_a_session_that_worked(tmp_path: Path) -> None:
    trusted, other = make_certificates(), make_certificates()
    context = trusted.server_context(tmp_path)
    authority = pem(tmp_path, "ca.pem", trusted.authority)
    with serving(tls=context) as (url, seen):
        access = SourceAccess(name="a", url=url, bearer_token="secret", tls=TlsFiles(authority=authority))
        async with open_source(access) as client:
            assert (await client.read("/")).status == 200
            context.load_cert_chain(pem(tmp_path, "new.pem", other.server), pem(tmp_path, "new.key", other.server_key))
            with pytest.raises(ToolError):  # the connection with the old certificate ends
                await client.read("/cut")
            with pytest.raises(ToolError, match=r"TLS certificate is not trusted") as raised:
                await client.read("/")
    assert "\n" not in str(raised.value)
    assert [each["Authorization"] for each in seen] == ["Bearer secret"]
