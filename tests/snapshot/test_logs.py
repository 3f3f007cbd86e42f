"""Recorded logs are cut as the kubelet cuts them, and refused in its words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holmes.snapshot.recorded_logs import LogKey, RecordedLog
from holmes.snapshot.recording import Recording
from holmes.snapshot.server.api import Answer, Api, ApiRequest
from holmes.snapshot.server.responses import ApiFailure
from tests.snapshot.recordings import recording, thing

LINES = (
    b"2026-01-31T11:59:00.000000001Z starting\n"
    b"2026-01-31T11:59:30.500000000Z 50%\r100%\n"
    b"2026-01-31T11:59:30.500000001Z 2026 is a year\n"
    b"2026-01-31T11:59:59.000000000+00:00 listening\n"
)
PLAIN = b"starting\n50%\r100%\n2026 is a year\nlistening\n"


@pytest.fixture
def shop(tmp_path: Path) -> Recording:
    file = tmp_path / "web.log"
    file.write_bytes(LINES)
    bare = tmp_path / "bare.log"
    bare.write_bytes(b"one\n2026-01-31T11:59:59Z two\n")
    logs = {
        _key("web", "web"): RecordedLog(path=file, offset_bytes=0, size_bytes=len(LINES), timestamps=True),
        _key("bare", "web"): RecordedLog(path=bare, offset_bytes=0, size_bytes=29, timestamps=False),
        _key("crashed", "web"): RecordedLog(path=file, offset_bytes=0, size_bytes=len(LINES), timestamps=True),
        _key("two", "b"): RecordedLog(path=tmp_path / "gone.log", offset_bytes=0, size_bytes=1, timestamps=True),
    }
    last = {"terminated": {"exitCode": 1}}
    objects = [
        _pod("web", {"web": {"state": {"running": {}}, "lastState": last}}),
        _pod("bare", {"web": {"state": {"running": {}}}}),
        _pod("two", {"a": {"state": {"waiting": {"reason": "ContainerCreating"}}}, "b": {"state": {"running": {}}}}),
        _pod("pulling", {"web": {"state": {"waiting": {"reason": "ImagePullBackOff"}}}}),
        _pod("crashed", {"web": {"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": last}}),
        _pod("unscheduled", {"web": {}}, node=""),
    ]
    return recording(*objects, logs=logs)


def _key(pod: str, container: str) -> LogKey:
    return LogKey(namespace="shop", pod=pod, container=container)


def _pod(name: str, containers: dict[str, Any], node: str = "n1") -> dict[str, Any]:
    statuses = [{"name": container, **status} for container, status in containers.items()]
    spec = {"nodeName": node, "containers": [{"name": container} for container in containers]}
    return thing("Pod", name, spec=spec, status={"containerStatuses": statuses})


def read(shop: Recording, pod: str, **query: str) -> bytes:
    answer = Api(shop).answer(ApiRequest(method="GET", path=f"/api/v1/namespaces/shop/pods/{pod}/log", query=query))
    assert isinstance(answer, Answer)
    return answer.body


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, PLAIN),
        ({"timestamps": "true"}, LINES),
        ({"tailLines": "1"}, b"listening\n"),
        ({"tailLines": "0"}, b""),
        ({"tailLines": "99"}, PLAIN),
        ({"limitBytes": "5"}, b"start"),
        ({"tailLines": "2", "limitBytes": "4"}, b"2026"),
        ({"sinceTime": "2026-01-31T11:59:30.500000001Z"}, b"2026 is a year\nlistening\n"),
        ({"sinceTime": "2026-01-31T11:59:31Z"}, b"listening\n"),
        ({"sinceTime": "2026-01-31T13:59:31+02:00"}, b"listening\n"),
        ({"sinceTime": "2027-01-01T00:00:00Z"}, b""),
        ({"sinceSeconds": "10"}, b"listening\n"),
        ({"sinceSeconds": "100", "tailLines": "3"}, b"50%\r100%\n2026 is a year\nlistening\n"),
        ({"follow": "true", "tailLines": "1"}, b"listening\n"),
    ],
)
def test_a_log_is_cut_as_the_kubelet_cuts_it(shop: Recording, query: dict[str, str], expected: bytes) -> None:
    assert read(shop, "web", **query) == expected


def test_a_log_without_times_is_served_as_it_is(shop: Recording) -> None:
    assert read(shop, "bare", sinceSeconds="1", timestamps="true") == b"one\n2026-01-31T11:59:59Z two\n"


def test_while_a_container_waits_both_logs_are_that_of_its_last_instance(shop: Recording) -> None:
    assert read(shop, "crashed", previous="true") == read(shop, "crashed") == PLAIN


def test_a_pod_that_no_node_has_yet_has_an_empty_log(shop: Recording) -> None:
    assert read(shop, "unscheduled") == b""


@pytest.mark.parametrize(
    ("pod", "query", "code", "message"),
    [
        ("two", {}, 400, "a container name must be specified for pod two, choose one of: [a b]"),
        ("two", {"container": "c"}, 400, "container c is not valid for pod two"),
        ("two", {"container": "a"}, 400, 'container "a" in pod "two" is waiting to start: ContainerCreating'),
        ("pulling", {}, 400, 'container "web" in pod "pulling" is waiting to start: trying and failing to pull image'),
        ("bare", {"previous": "true"}, 400, 'previous terminated container "web" in pod "bare" not found'),
        ("web", {"previous": "true"}, 404, "the log was not recorded: logs are not part of this recording"),
        ("web", {"tailLines": "-1"}, 400, "tailLines: '-1' is not a number"),
        ("web", {"sinceTime": "noon"}, 400, "sinceTime: 'noon' is not a valid time; expected for example 2026-01-31T"),
        ("nothing", {}, 404, 'pods "nothing" not found'),
        ("two", {"container": "b"}, 500, "gone.log' cannot be read: No such file or directory"),
    ],
)
def test_a_log_that_cannot_be_had_is_refused_with_the_reason(
    shop: Recording, pod: str, query: dict[str, str], code: int, message: str
) -> None:
    with pytest.raises(ApiFailure) as caught:
        read(shop, pod, **query)
    assert caught.value.status_code == code
    assert message in str(caught.value)
