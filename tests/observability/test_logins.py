"""Logins of sources: a token is fetched once and renewed, requests are signed for AWS, and secrets stay secret."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import ReadOnlyCredentials

from holmes.observability import aws_signature
from holmes.observability.access import SourceAccess, SourceClient, open_source
from holmes.observability.aws_signature import AwsScope, AwsSignature
from holmes.observability.metrics.prometheus import PrometheusSource
from holmes.observability.token_login import ClientCredentials, TokenLogin
from holmes.toolsets.instances import Instances, instances_of
from holmes.toolsets.metrics.toolset import KIND
from holmes.values.errors import ConfigError, ToolError
from holmes.values.json_types import JsonValue
from tests.support.token_server import CLIENT, SECRET, Asked, TokenServer, serving

ACCESS_KEY, ACCESS_SECRET = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"


@pytest.fixture
def servers() -> Iterator[TokenServer]:
    with serving(TokenServer()) as started:
        yield started


def with_token(servers: TokenServer, clock: Callable[[], float] = time.monotonic, **others: str) -> SourceAccess:
    known = {"token_url": f"{servers.url}/token", "client_id": CLIENT, "client_secret": SECRET, **others}
    login = TokenLogin(ClientCredentials(**known), clock)  # type: ignore[arg-type]
    return SourceAccess(name="prod", url=servers.url, headers={"X-Scope-OrgID": "shop"}, login=login)


def query(access: SourceAccess, times: int = 1) -> None:
    async def run() -> None:
        for _ in range(times):
            async with open_source(access) as client:
                await PrometheusSource(client).instant('up{job="a b"} + 1', at=0)

    asyncio.run(run())


def refusal(access: SourceAccess) -> str:
    with pytest.raises(ToolError) as raised:
        query(access)
    text = str(raised.value)
    assert "\n" not in text
    assert SECRET not in text
    assert "token-" not in text
    return text


def test_a_token_is_fetched_when_it_is_needed_and_then_kept(servers: TokenServer) -> None:
    access = with_token(servers, scope="metrics.read", audience="prod")
    assert servers.issued == []
    query(access, times=3)
    query(access)
    (issued,) = servers.issued
    form = parse_qs(issued.body.decode())
    assert form == {"grant_type": ["client_credentials"], "scope": ["metrics.read"], "audience": ["prod"]}
    assert "X-Scope-OrgID" not in issued.headers
    assert [each.headers["Authorization"] for each in servers.read] == ["Bearer token-1"] * 4
    assert SECRET not in repr(access)


def test_requests_at_the_same_time_share_one_token(servers: TokenServer) -> None:
    access = with_token(servers)

    async def run() -> None:
        async with open_source(access) as client:
            await asyncio.gather(*(PrometheusSource(client).instant("up", at=0) for _ in range(8)))

    asyncio.run(run())
    assert len(servers.issued) == 1


def test_a_token_is_replaced_shortly_before_its_end(servers: TokenServer) -> None:
    now = [1_000.0]
    access = with_token(servers, lambda: now[0])
    query(access)
    now[0] += 3_600 - 31
    query(access)
    assert len(servers.issued) == 1
    now[0] += 2
    query(access)
    assert len(servers.issued) == 2


@pytest.mark.parametrize(
    "lasts",
    [10**400, "9" * 5_000, float("nan"), float("inf"), -1, 0, True, "soon", None],
    ids=lambda lasts: str(lasts)[:9],
)
def test_a_lifetime_that_is_not_valid_is_unknown(servers: TokenServer, lasts: JsonValue) -> None:
    now = [1_000.0]
    servers.lasts = lasts
    access = with_token(servers, lambda: now[0])
    query(access)
    now[0] += 10**8
    query(access)
    assert len(servers.issued) == 1


def test_a_rejected_token_is_replaced_once_and_the_form_is_sent_again(servers: TokenServer) -> None:
    access = with_token(servers)
    query(access)
    servers.tokens = []
    query(access)
    assert len(servers.issued) == 2
    first, again = servers.read[1:]
    assert first.body == again.body != b""


def test_a_source_that_rejects_every_token_is_one_line_and_one_retry(servers: TokenServer) -> None:
    servers.answer = (200, b'{"access_token": "other", "token_type": "bearer"}')
    assert "the credentials are rejected (HTTP 401)" in refusal(with_token(servers))
    assert (len(servers.issued), len(servers.read)) == (2, 2)


def test_a_server_that_reads_only_the_form_gets_the_secret_there(servers: TokenServer) -> None:
    servers.takes_header, servers.lasts = False, None
    access = with_token(servers)
    query(access)
    servers.tokens = []
    query(access)
    assert ["Authorization" in each.headers for each in servers.issued] == [True, False, False]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ((403, b'{"error": "access_denied"}'), "the client is rejected (access_denied); check oauth"),
        ((400, f'{{"error": "{SECRET}"}}'.encode()), "the client is rejected (HTTP 400); check oauth"),
        ((500, b"<html>"), "the client is rejected (HTTP 500); check oauth"),
        ((307, b""), "the redirect (HTTP 307) is not followed; check oauth"),
        ((200, b"[]"), "no valid access_token is returned; check oauth.token_url"),
        ((200, b'{"access_token": "a\\nb"}'), "no valid access_token is returned; check oauth.token_url"),
        (
            (200, b'{"access_token": "a", "token_type": "mac"}'),
            "the token is not a bearer token; configure another login",
        ),
        ((200, b"x" * 10_000_000), "no valid access_token is returned"),
    ],
)
def test_each_failure_of_the_token_server_is_one_line(
    servers: TokenServer, answer: tuple[int, bytes], message: str
) -> None:
    servers.answer = answer
    expected = f"prod ({servers.url}): the token server {servers.url}: {message}"
    assert refusal(with_token(servers)).startswith(expected)
    assert servers.read == []


def test_a_token_server_that_does_not_answer_is_named() -> None:
    login = TokenLogin(ClientCredentials(token_url="http://127.0.0.1:9/t", client_id="a", client_secret=SECRET))
    access = SourceAccess(name="prod", url="http://127.0.0.1:9/p", login=login)
    assert "the token server http://127.0.0.1:9: the connection is refused; check the address" in refusal(access)


def test_a_token_never_reaches_another_origin(servers: TokenServer) -> None:
    with serving(TokenServer()) as other:
        servers.target = f"{other.url}/api/v1/query"
        assert "which is not followed" in refusal(with_token(servers))
        assert (other.issued, other.read) == ([], [])


def with_signature(url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, **scope: str) -> SourceAccess:
    """A source in AWS, and the files and variables of the AWS CLI."""
    credentials = tmp_path / "credentials"
    credentials.write_text(f"[prod]\naws_access_key_id={ACCESS_KEY}\naws_secret_access_key={ACCESS_SECRET}\n")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(credentials))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    return SourceAccess(
        name="amp", url=url, login=AwsSignature(AwsScope(region="eu-central-1", service="aps", **scope))
    )


def verified(asked: Asked, host: str, token: str | None = None) -> bool:
    """Sign a received request with botocore, as AWS does to check it, and compare the signatures."""
    written = asked.headers["Authorization"]
    names = written.partition("SignedHeaders=")[2].partition(",")[0].split(";")
    received = {name.lower(): value for name, value in asked.headers.items()}
    signed = {name: received[name] for name in names if name not in {"x-amz-date", "x-amz-security-token"}}
    again = AWSRequest(method=asked.method, url=f"http://{host}{asked.path}", data=asked.body, headers=signed)
    again.context["timestamp"] = received["x-amz-date"]
    signer = SigV4Auth(ReadOnlyCredentials(ACCESS_KEY, ACCESS_SECRET, token), "aps", "eu-central-1")
    if token:
        again.headers["X-Amz-Security-Token"] = token
    again.headers["X-Amz-Date"] = received["x-amz-date"]
    return written.endswith(
        f"Signature={signer.signature(signer.string_to_sign(again, signer.canonical_request(again)), again)}"
    )


def test_requests_are_signed_as_aws_checks_them(
    servers: TokenServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    access = with_signature(servers.url, monkeypatch, tmp_path, profile="prod")

    async def run() -> None:
        async with open_source(access) as client:
            await client.read("/api/v1/query", [("query", "sum by (a b)")], method="POST", accepts=frozenset({401}))
            matching = [("match[]", '{job="a b+c/é"}'), ("limit", "1")]
            await client.read("/api/v1/label/job/values", matching, accepts=frozenset({401}))

    asyncio.run(run())
    posted, read = servers.read
    host = urlsplit(servers.url).netloc
    assert verified(posted, host)
    assert verified(read, host)
    assert posted.body == b"query=sum+by+%28a+b%29"
    assert "+" not in read.path
    assert parse_qs(urlsplit(read.path).query)["match[]"] == ['{job="a b+c/é"}']
    assert "/eu-central-1/aps/aws4_request" in read.headers["Authorization"]
    changed = Asked(read.method, read.path.replace("limit=1", "limit=2"), read.headers, read.body)
    assert not verified(changed, host)


def test_credentials_of_a_session_are_signed_with_their_token(
    servers: TokenServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    access = with_signature(servers.url, monkeypatch, tmp_path)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", ACCESS_SECRET)
    monkeypatch.setenv("AWS_SESSION_TOKEN", "session")
    assert "the credentials are rejected (HTTP 401)" in refusal(access)
    (asked,) = servers.read  # a signature is not replaced
    assert asked.headers["X-Amz-Security-Token"] == "session"
    assert verified(asked, urlsplit(servers.url).netloc, "session")


@pytest.mark.parametrize(
    ("scope", "message"),
    [
        ({}, "no AWS credentials are found; set AWS_ACCESS_KEY_ID, aws.profile or a role"),
        ({"profile": "none"}, "(The config profile (none) could not be found); check aws.profile"),
    ],
)
def test_missing_credentials_of_aws_are_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, scope: dict[str, str], message: str
) -> None:
    access = with_signature("http://127.0.0.1:9", monkeypatch, tmp_path, **scope)
    if not scope:
        (tmp_path / "credentials").write_text("")
    assert message in refusal(access)


def test_without_botocore_the_next_step_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "botocore.auth", None)
    access = with_signature("http://127.0.0.1:9", monkeypatch, tmp_path)
    assert "aws requires botocore, which is not installed; pip install botocore" in refusal(access)


def with_role(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, sts: str, *, has_token: bool = True) -> SourceAccess:
    """A source in AWS, and the variables of a pod with a role, whose credentials `sts` gives."""
    access = with_signature("http://127.0.0.1:9", monkeypatch, tmp_path)
    if has_token:
        (tmp_path / "token").write_text("token-of-pod")
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(tmp_path / "token"))
    monkeypatch.setenv("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/holmes")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", sts)
    return access


def test_a_role_that_may_not_be_assumed_is_one_line(
    servers: TokenServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    denied = b"<ErrorResponse><Error><Code>AccessDenied</Code><Message>Not\nallowed</Message></Error></ErrorResponse>"
    servers.answer = (403, denied)
    access = with_role(monkeypatch, tmp_path, f"{servers.url}/token")
    assert "no AWS credentials can be read (An error occurred (AccessDenied) when calling" in refusal(access)
    assert caplog.records == []


def test_a_damaged_answer_with_credentials_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    access = with_signature("http://127.0.0.1:9", monkeypatch, tmp_path, profile="other")
    (tmp_path / "config").write_text("[profile other]\ncredential_process = echo {secret\n")
    assert "no AWS credentials can be read (JSONDecodeError); check aws.profile" in refusal(access)


def test_a_source_without_credentials_does_not_disable_the_others(
    servers: TokenServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = with_role(monkeypatch, tmp_path, servers.url, has_token=False)
    assert "no AWS credentials can be read ([Errno 2] No such file or directory" in refusal(broken)

    async def version(client: SourceClient) -> str:
        await client.read("/api/v1/query")
        return "Prometheus"

    told = asyncio.run(Instances([broken, with_token(servers)]).check(version))
    assert "amp (http://127.0.0.1:9): no AWS credentials can be read" in told
    assert "prod: Prometheus" in told


def test_a_server_of_roles_that_does_not_answer_occupies_one_thread_for_a_short_time(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(aws_signature, "_LONGEST_SECONDS", 0.2)
    monkeypatch.setattr(aws_signature, "_READ_SECONDS", 0.5)
    before = set(threading.enumerate())
    with socket.create_server(("127.0.0.1", 0), backlog=32) as silent:
        access = with_role(monkeypatch, tmp_path, f"http://127.0.0.1:{silent.getsockname()[1]}")

        async def failed() -> str:
            async with open_source(access) as client:
                with pytest.raises(ToolError) as raised:
                    await client.read("/")
                return str(raised.value)

        async def run() -> list[str]:
            return await asyncio.gather(*(failed() for _ in range(8)))

        assert all("no AWS credentials within 0.2 s; check aws.profile" in each for each in asyncio.run(run()))
        threads = set(threading.enumerate()) - before
        assert len(threads) <= 1
        assert all(each.daemon for each in threads)
        for each in threads:
            each.join()
        silent.setblocking(False)
        attempts = 0
        with contextlib.suppress(BlockingIOError):
            while True:
                silent.accept()[0].close()
                attempts += 1
    assert attempts == 2


OAUTH: dict[str, JsonValue] = {"token_url": "http://a/t", "client_id": "a", "client_secret": SECRET}


def test_the_keys_become_logins_that_instances_share() -> None:
    config: dict[str, JsonValue] = {
        "instances": {
            "a": {"url": "http://a", "oauth": OAUTH},
            "b": {"url": "http://b", "oauth": OAUTH},
            "amp": {"url": "http://c", "aws": {"region": "eu-central-1"}},
        }
    }
    first, second, signed = instances_of(config, KIND)
    assert isinstance(first.login, TokenLogin)
    assert first.login is second.login
    assert isinstance(signed.login, AwsSignature)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"oauth": OAUTH, "username": "u"}, "username and oauth are mutually exclusive"),
        ({"oauth": OAUTH, "aws": {"region": "eu-central-1"}}, "oauth and aws are mutually exclusive"),
        ({"aws": {"region": "eu-central-1"}, "bearer_token": "t"}, "bearer_token and aws are mutually exclusive"),
        ({"oauth": {**OAUTH, "token_url": "a"}}, "oauth.token_url: 'a' does not begin with http"),
        ({"oauth": {**OAUTH, "token_url": "htp://me:hidden@a/t"}}, "oauth.token_url: 'htp://a/t' does not begin"),
        ({"oauth": {**OAUTH, "token_url": "me:hidden@a/t"}}, "oauth.token_url: 'a/t' does not begin with http"),
        ({"url": "htp://me:hidden@b"}, "url: 'htp://b' does not begin with http"),
        ({"url": "http://me:hidden/1@b"}, "url: 'http://b' cannot be read (encode special characters of its password)"),
        ({"url": "http://me:p@b", "oauth": OAUTH}, "the user name in url and oauth are mutually exclusive"),
        ({"url": "http://me@b", "aws": {"region": "a"}}, "the user name in url and aws are mutually exclusive"),
        ({"url": "http://:p@b", "username": "u"}, "the user name in url and username are mutually exclusive"),
        ({"oauth": {**OAUTH, "scopes": []}}, "oauth.scopes: Extra inputs are not permitted; valid keys: token_url,"),
        ({"oauth": {"token_url": "http://a"}}, "oauth.client_id: Field required"),
        ({"aws": {}}, "aws.region: Field required"),
        ({"aws": {"region": "eu central"}}, "aws.region: String should match pattern"),
    ],
)
def test_a_wrong_login_is_an_error_with_its_place(keys: dict[str, JsonValue], message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        instances_of({"url": "http://a", **keys}, KIND)
    assert message in str(raised.value)
    assert SECRET not in str(raised.value)
    assert "hidden" not in str(raised.value)
