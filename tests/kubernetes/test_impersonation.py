"""A kubeconfig that acts as another user does so in Holmes too, or says why it cannot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from holmes.kubernetes.client import ClusterClient
from holmes.kubernetes.kubeconfig import load_access
from holmes.values.environment import Environment
from holmes.values.errors import ConfigError
from tests.support.kubernetes_api import document, kubernetes_api, listing, write_kubeconfig

if TYPE_CHECKING:
    from pathlib import Path


def _access(folder: Path, **user: Any) -> tuple[tuple[str, str], ...]:  # noqa: ANN401  also what is wrong
    path = write_kubeconfig(folder, "https://dev", user={name.replace("_", "-"): each for name, each in user.items()})
    return load_access(Environment.of({"KUBECONFIG": str(path)})).user.impersonation


async def test_every_request_says_as_whom_it_is_sent(tmp_path: Path) -> None:
    user = {"as": "jürgen", "as-uid": "17", "as-groups": ["ops"], "as-user-extra": {"example.org/scopes": ["view"]}}
    with kubernetes_api() as api:
        api.on("/version", document({"gitVersion": "v1.34.0"}))
        api.on("/api/v1/pods", listing([]))
        environment = Environment.of({"KUBECONFIG": str(write_kubeconfig(tmp_path, api.url, user=user))})
        async with await ClusterClient.connect(environment) as client:
            await client.probe()
            await client.list("/api/v1/pods")
    for request in api.requests:
        assert {name: value for name, value in request.headers.items() if name.startswith("impersonate")} == {
            "impersonate-user": "jürgen".encode().decode("latin-1"),
            "impersonate-uid": "17",
            "impersonate-group": "ops",
            "impersonate-extra-example.org%2fscopes": "view",
        }
        assert request.headers["accept"] == "application/json"


def test_a_header_is_repeated_for_each_group_and_value(tmp_path: Path) -> None:
    extra = {"scopes": ["view", "edit"], "ä b": ["x"]}
    assert _access(tmp_path, **{"as": "eve"}, as_groups=["ops", "dev"], as_user_extra=extra) == (
        ("Impersonate-User", "eve"),
        ("Impersonate-Group", "ops"),
        ("Impersonate-Group", "dev"),
        ("Impersonate-Extra-scopes", "view"),
        ("Impersonate-Extra-scopes", "edit"),
        ("Impersonate-Extra-%C3%A4%20b", "x"),
    )


def test_without_another_user_nothing_is_sent(tmp_path: Path) -> None:
    assert _access(tmp_path, **{"as": "", "as-groups": None, "as-user-extra": {}}) == ()


@pytest.mark.parametrize("value", ["eve\nInjected: yes", "eve\r", "\x00", " eve", "eve\t", "\x7f"])
@pytest.mark.parametrize("key", ["as", "as-uid", "as-groups", "as-user-extra"])
def test_a_value_that_http_does_not_allow_is_one_line(tmp_path: Path, key: str, value: str) -> None:
    written = {"as": value, "as-uid": value, "as-groups": ["ops", value], "as-user-extra": {"scopes": [value]}}[key]
    with pytest.raises(ConfigError, match="another character that HTTP does not allow; correct it") as raised:
        _access(tmp_path, **{"as": "eve", key: written})
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("user", "message"),
    [
        ({"as-groups": ["ops"]}, "has as-uid, as-groups or as-user-extra, but not `as`"),
        ({"as-uid": "17"}, "has as-uid, as-groups or as-user-extra, but not `as`"),
        ({"as-user-extra": {"scopes": ["view"]}}, "has as-uid, as-groups or as-user-extra, but not `as`"),
        ({"as": 12345}, "a value of Impersonate-User is not text; put it in quotation marks"),
        ({"as": "eve", "as-groups": [1000]}, "a value of Impersonate-Group is not text"),
        ({"as": "eve", "as-user-extra": ["scopes"]}, "a value of Impersonate-Extra is not text"),
        ({"as": "eve", "as-groups": {"ops": True}}, "a value of Impersonate-Group is not text"),
    ],
)
def test_an_impersonation_that_is_incomplete_is_never_ignored(
    tmp_path: Path, user: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        _access(tmp_path, **user)
