"""Logs are found by the names of their files, read from their ends, decoded and masked. Alone, they show no state."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holmes.snapshot.recorded_logs import LOG_LIMIT_BYTES, LogKey, LogQuery, found_log, select
from holmes.snapshot.recording import Recording
from holmes.snapshot.sources import load_snapshot
from holmes.values.errors import ConfigError
from tests.snapshot.elsewhere.sources import FORMATS, REDACTOR, asked, copied, recorded, scanned
from tests.snapshot.recordings import ask

LINE = "2026-01-31T11:59:59.000000000Z FATAL no space left on device\n"
POD = "checkout-6998575d6b-chbgv"
UID = "0b1d6a6c-6a52-4d8e-9a57-3f1d2c4b5a69"


def write(folder: Path, **files: str | bytes) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def keys(source: Recording) -> set[tuple[str, str, str, bool]]:
    return {(key.namespace, key.pod, key.container, key.previous) for key in source.logs}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("shop/web-1/app.log", ("shop", "web-1", "app", False)),
        ("shop/web-1/app-previous.log", ("shop", "web-1", "app", True)),
        ("shop/web-1/app/previous.log", ("shop", "web-1", "app", True)),
        ("dump/logs/shop/web-1/app.log", ("shop", "web-1", "app", False)),
        (f"shop/{POD}.log", ("shop", POD, "checkout", False)),
        (f"{POD}/app.log", ("default", POD, "app", False)),
        (f"{POD}.log", ("default", POD, "checkout", False)),
        (f"shop_{POD}_app.log", ("shop", POD, "app", False)),
        (f"var/log/pods/shop_{POD}_{UID}/app/0.log", ("shop", POD, "app", False)),
        (f"containers/{POD}_shop_app-{'ab' * 32}.log", ("shop", POD, "app", False)),
    ],
)
def test_the_usual_names_of_logs_are_understood(
    tmp_path: Path, name: str, expected: tuple[str, str, str, bool]
) -> None:
    assert keys(load_snapshot(write(tmp_path, **{name: LINE}))) == {expected}


def test_the_newest_two_instances_in_a_folder_of_the_kubelet_are_used(tmp_path: Path) -> None:
    folder = f"pods/shop_{POD}_{UID}/app"
    line = "2026-01-31T11:59:59.123456789Z stderr F instance {}\n"
    loaded = load_snapshot(write(tmp_path, **{f"{folder}/{number}.log": line.format(number) for number in (2, 9, 10)}))
    found = {key.previous: select(log, LogQuery()) for key, log in loaded.logs.items()}
    assert found == {True: b"instance 9\n", False: b"instance 10\n"}


def test_logs_beside_objects_belong_to_the_pods_by_name(tmp_path: Path) -> None:
    folder = copied("kubectl-get", tmp_path / "printed")
    write(folder, **{"more/web-7757fd6ddc-pr85f-web.log": "beside\n", "more/unknown-1.log": "lost\n"})
    loaded = load_snapshot(folder)
    assert keys(loaded) == {
        ("shop", POD, "checkout", True),
        ("shop", "web-7757fd6ddc-pr85f", "web", False),
    }
    assert "1 log is of a pod that is not part of this source" in loaded.notes[0]


@pytest.mark.parametrize(
    "content",
    [
        LINE.replace("\n", "\r\n").encode(),
        b"\xef\xbb\xbf" + LINE.encode(),
        LINE.replace("\n", "\r\n").encode("utf-16"),
        b"\xfe\xff" + LINE.encode("utf-16-be"),
        LINE.replace("Z ", "Z stderr F ").encode(),
    ],
    ids=["windows", "mark", "utf-16", "big endian", "runtime"],
)
def test_encodings_and_line_ends_do_not_matter(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.log").write_bytes(content)
    log = found_log(tmp_path / "a.log")
    assert log.timestamps
    assert select(log, LogQuery()) == b"FATAL no space left on device\n"
    assert select(log, LogQuery(timestamps=True)) == LINE.encode()


def test_only_the_end_of_a_huge_log_is_read(tmp_path: Path) -> None:
    path = tmp_path / "shop" / "web-1" / "web.log"
    path.parent.mkdir(parents=True)
    with path.open("wb") as file:
        file.truncate(10 * 1024**3)  # the file system stores no zeros
        file.seek(0, os.SEEK_END)
        file.write(b"\n" + LINE.encode() * 1_000)
    loaded = load_snapshot(tmp_path)
    (log,) = loaded.logs.values()
    assert log.size_bytes <= LOG_LIMIT_BYTES
    assert select(log, LogQuery(tail_lines=2)) == LINE.encode() * 2
    assert loaded.notes == ("1 log is long; only the last 16 MB of each are read",)


async def test_logs_alone_answer_about_lines_and_leave_the_state_open(tmp_path: Path) -> None:
    quiet = LINE.replace("FATAL no space left on device", "INFO listening on :8080")
    folder = write(tmp_path, **{f"shop/{POD}/checkout.log": LINE, "shop/web-0/web.log": quiet})
    result = await scanned(folder)
    assert result.report.incidents == ()
    assert any(each.kinds == ("Pod",) and "names of their logs" in each.why for each in result.report.not_checked)
    failing, state, other = await asked(
        folder, [f"why does {POD} crash?", "is web-0 healthy?", "why does payments crash?"]
    )
    assert "no space left on device" in failing.summary
    assert (state.verdict, other.verdict) == ("inconclusive", "inconclusive")
    assert "Pod could not be read" in state.summary


@pytest.mark.parametrize("name", FORMATS)
def test_secrets_in_the_files_of_other_tools_are_masked(tmp_path: Path, name: str) -> None:
    """A token of a known form, in a log and in an object, planted in each format."""
    token = "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
    folder = copied(name, tmp_path / "copy")
    planted = 0
    for file in folder.rglob("*"):
        if not file.is_file() or file.is_symlink():
            continue
        text = file.read_text()
        changed = text.replace("could not connect to ledger", f"could not connect with {token} to ledger")
        planted += text.count("could not connect to ledger") > 0
        file.write_text(changed)
    assert planted
    loaded = load_snapshot(folder, redactor=REDACTOR)
    served = [select(log, LogQuery()).decode() for log in loaded.logs.values()]
    served += [str(item) for kind in loaded.objects.values() for item in kind.items]
    assert any("could not connect with" in each for each in served)
    assert not any(token in each for each in served)


def test_values_of_secrets_are_masked_in_logs_without_a_redactor(tmp_path: Path) -> None:
    """`kubectl get secrets -o yaml` prints the values. They are dropped, and masked wherever a log repeats them."""
    value = "cXVlcnk3SGFtbWVyOVBsYW5ldA=="  # query7Hammer9Planet
    secret = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Secret\n"
    secret += f"  metadata: {{name: db, namespace: shop, uid: a}}\n  data: {{password: {value}}}\n"
    pod = "- {apiVersion: v1, kind: Pod, metadata: {name: web-1, namespace: shop, uid: b},"
    pod += " spec: {containers: [{name: web}]}}\n"
    write(tmp_path, **{"all.yaml": secret + pod, "shop/web-1/web.log": "login with query7Hammer9Planet failed\n"})
    loaded = load_snapshot(tmp_path)
    assert select(loaded.logs[LogKey(namespace="shop", pod="web-1", container="web")], LogQuery()) == (
        b"login with (REDACTED) failed\n"
    )
    assert ask(loaded, "/api/v1/namespaces/shop/secrets/db").body["data"] == {"password": "KFJFREFDVEVEKQ=="}


def test_an_unknown_layout_is_one_line_with_what_was_seen_and_the_known_formats(tmp_path: Path) -> None:
    write(tmp_path, **{"report.pdf": "x", "notes/readme.md": "x"})
    with pytest.raises(ConfigError) as caught:
        load_snapshot(tmp_path)
    message = str(caught.value)
    assert "is not in a known format: it has 2 files (1 .md, 1 .pdf) in 'notes/', 'report.pdf'" in message
    assert all(
        each in message for each in ("support bundle", "must-gather", "cluster-info dump", "kubectl get", "logs")
    )
    assert "\n" not in message


def test_several_bundles_in_one_folder_are_not_mixed(tmp_path: Path) -> None:
    for name in ("monday", "tuesday"):
        copied("support-bundle", tmp_path / name)
    with pytest.raises(ConfigError, match=r"2 support bundles \('monday', 'tuesday'\); choose one of them"):
        load_snapshot(tmp_path)


def test_why_a_bundle_could_not_collect_a_list_or_a_log_is_said(tmp_path: Path) -> None:
    folder = copied("support-bundle", tmp_path / "bundle")
    resources = folder / "cluster-resources"
    (resources / "pvcs" / "books.json").unlink()
    (resources / "pvcs-errors.json").write_text('{"books": "persistentvolumeclaims is forbidden"}')
    loaded = load_snapshot(folder)
    answer = ask(loaded, "/api/v1/namespaces/books/persistentvolumeclaims")
    assert (answer.status_code, "is forbidden" in answer.body["message"]) == (403, True)
    assert ask(loaded, "/api/v1/namespaces/shop/persistentvolumeclaims").body["items"] == []
    reasons = [each.reason for each in loaded.unread if each.resource == "pods/log"]
    assert any("CreateContainerConfigError" in each for each in reasons)


def test_the_version_of_the_bundle_is_the_one_of_the_cluster() -> None:
    assert load_snapshot(recorded("support-bundle")).version["gitVersion"] == "v1.34.4"


def test_a_source_without_objects_and_logs_is_refused(tmp_path: Path) -> None:
    write(tmp_path, **{"cluster-resources/nothing.txt": "x"})
    with pytest.raises(ConfigError, match="the support bundle has neither objects nor logs"):
        load_snapshot(tmp_path)
