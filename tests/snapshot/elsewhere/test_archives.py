"""An archive of others never writes outside its folder, never fills memory or disk, and is refused in one line."""

from __future__ import annotations

import io
import os
import tarfile
import zipfile
from pathlib import Path

import pytest

from holmes.snapshot.archives import ArchiveLimits, is_archive, unpack
from holmes.snapshot.recorded_logs import LOG_LIMIT_BYTES
from holmes.snapshot.sources import load_snapshot
from holmes.values.errors import ConfigError

POD = b"{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: shop}}\n"


def make_tar(path: Path, entries: dict[str, bytes | str | int], mode: str = "w:gz") -> Path:
    """A tar file. The value of an entry is its content, the target of a link, or the type of a special entry."""
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for name, value in entries.items():
            entry = tarfile.TarInfo(name)
            if isinstance(value, bytes):
                entry.size = len(value)
                archive.addfile(entry, io.BytesIO(value))
                continue
            entry.type = tarfile.SYMTYPE if isinstance(value, str) else bytes([value])
            entry.linkname = value if isinstance(value, str) else "pods.yaml"
            archive.addfile(entry)
    return path


def unpacked(archive: Path, limits: ArchiveLimits | None = None) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """The files and the warnings."""
    folder = archive.parent / "into"
    folder.mkdir()
    notes = unpack(archive, folder, limits)
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}, notes


def everything_below(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


@pytest.mark.parametrize(
    "name", ["../out.yaml", "a/../../out.yaml", "/tmp/out.yaml", "..\\out.yaml", "C:\\out.yaml", "C:/out.yaml"]
)
def test_a_name_that_leads_out_of_the_folder_is_skipped(tmp_path: Path, name: str) -> None:
    found, notes = unpacked(make_tar(tmp_path / "a.tgz", {name: POD, "pods.yaml": POD}))
    assert found == {"pods.yaml": POD}
    assert notes == ("1 entry was not unpacked (1 unsafe name)",)
    assert everything_below(tmp_path) == {"a.tgz", "into", "into/pods.yaml"}


def test_links_and_devices_are_not_unpacked_and_nothing_is_written_through_them(tmp_path: Path) -> None:
    target = tmp_path / "private"
    target.mkdir()
    entries: dict[str, bytes | str | int] = {
        "pods.yaml": POD,
        "out": str(target),
        "out/new.yaml": POD,
        "hard.yaml": tarfile.LNKTYPE[0],
        "zero.log": tarfile.CHRTYPE[0],
        "disk.log": tarfile.BLKTYPE[0],
        "pipe.log": tarfile.FIFOTYPE[0],
    }
    found, notes = unpacked(make_tar(tmp_path / "a.tgz", entries))
    assert found == {"pods.yaml": POD, "out/new.yaml": POD}
    assert notes == ("3 entries were not unpacked (3 device)",)
    assert list(target.iterdir()) == []


def test_a_link_in_a_zip_file_is_not_unpacked(tmp_path: Path) -> None:
    link = zipfile.ZipInfo("link.yaml")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(link, "/etc/hostname")
        archive.writestr("../out.yaml", POD)
        archive.writestr("deep/pods.yaml", POD)
    found, notes = unpacked(tmp_path / "a.zip")
    assert found == {"deep/pods.yaml": POD}
    assert notes == ("1 entry was not unpacked (1 unsafe name)",)


def test_a_name_that_is_a_file_and_a_folder_or_too_long_is_skipped(tmp_path: Path) -> None:
    entries: dict[str, bytes | str | int] = {"a.yaml": POD, "a.yaml/b.yaml": POD, f"{'x' * 300}.yaml": POD}
    found, notes = unpacked(make_tar(tmp_path / "a.tgz", entries))
    assert found == {"a.yaml": POD}
    assert notes == ("2 entries were not unpacked (2 unsafe name)",)


@pytest.mark.parametrize("ending", ["tgz", "zip"])
def test_a_bomb_is_refused_before_it_fills_the_disk(tmp_path: Path, ending: str) -> None:
    bomb, zeros = tmp_path / f"bomb.{ending}", b"\0" * (64 * 1024 * 1024)
    if ending == "zip":
        with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("pods.yaml", zeros)
    else:
        make_tar(bomb, {"pods.yaml": zeros})
    limits = ArchiveLimits(free_bytes=1024 * 1024)
    with pytest.raises(
        ConfigError, match=rf"bomb\.{ending}: the archive is not unpacked: it unpacks to more than \d+ MB"
    ):
        unpacked(bomb, limits)
    assert not [path for path in (tmp_path / "into").rglob("*") if path.is_file()]


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        (ArchiveLimits(files=2), "it has more than 2 entries"),
        (ArchiveLimits(read_bytes=2 * 1024 * 1024), "it unpacks to more than 2 MB"),
        (ArchiveLimits(kept_bytes=1024 * 1024), "its files have more than 1 MB"),
    ],
)
def test_each_limit_is_one_line(tmp_path: Path, limits: ArchiveLimits, expected: str) -> None:
    content = os.urandom(1024 * 1024)
    archive = make_tar(tmp_path / "a.tar", {f"{number}.log": content for number in range(3)}, "w")
    with pytest.raises(ConfigError, match=expected) as caught:
        unpacked(archive, limits)
    assert "\n" not in str(caught.value)


def test_of_a_long_log_only_the_end_is_kept(tmp_path: Path) -> None:
    line = b"2026-01-31T12:00:00Z a line of a log that is long enough to fill megabytes\n"
    log = line * (2 * LOG_LIMIT_BYTES // len(line)) + b"the last line\n"
    found, _ = unpacked(make_tar(tmp_path / "a.tar", {"shop/web-1/web.log": log}, "w"))
    kept = found["shop/web-1/web.log"]
    assert LOG_LIMIT_BYTES - 2 * 1024 * 1024 < len(kept) <= LOG_LIMIT_BYTES + 1024 * 1024
    assert kept.startswith(b"2026-01-31T")
    assert kept.endswith(b"the last line\n")


def test_a_header_that_would_fill_memory_is_refused(tmp_path: Path) -> None:
    header = tarfile.TarInfo("pax")
    header.type, header.size = tarfile.XHDTYPE, 1024 * 1024 * 1024
    with (tmp_path / "a.tar").open("wb") as file:
        file.write(header.tobuf())
        file.truncate(header.size + 1024)
    with pytest.raises(ConfigError, match="the archive is damaged or incomplete"):
        unpacked(tmp_path / "a.tar")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("cut.tgz", "the archive is damaged or incomplete"),
        ("cut.zip", "the archive is damaged or incomplete"),
        ("empty.tgz", "the archive has no file that Holmes can read"),
        ("empty.zip", "the archive has no file that Holmes can read"),
        ("locked.zip", "is encrypted"),
        ("log.gz", "the archive is damaged or incomplete"),
    ],
)
def test_an_archive_that_cannot_be_read_is_one_line_with_its_name(tmp_path: Path, name: str, expected: str) -> None:
    archive = tmp_path / name
    if name == "log.gz":
        import gzip

        archive.write_bytes(gzip.compress(b"just a log\n" * 100))
    elif name.endswith("zip"):
        with zipfile.ZipFile(archive, "w") as opened:
            if not name.startswith("empty"):
                opened.writestr("pods.yaml", POD * 100)
    else:
        make_tar(archive, {} if name.startswith("empty") else {"pods.yaml": os.urandom(50_000)})
    content = archive.read_bytes()
    if name.startswith("cut"):
        archive.write_bytes(content[: len(content) // 2])
    elif name.startswith("locked"):  # the flag of an encrypted entry, in both of its headers
        archive.write_bytes(
            content.replace(b"PK\3\4\x14\0\0", b"PK\3\4\x14\0\1").replace(b"\x14\3\x14\0\0", b"\x14\3\x14\0\1")
        )
    assert is_archive(archive)
    (tmp_path / "scratch").mkdir()
    with pytest.raises(ConfigError, match=expected) as caught:
        load_snapshot(archive, scratch=tmp_path / "scratch")
    assert str(archive) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_links_in_a_folder_that_lead_out_of_it_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "secret.yaml").write_bytes(POD.replace(b"web", b"private"))
    bundle = tmp_path / "bundle"
    bundle.mkdir()
    (bundle / "pods.yaml").write_bytes(POD)
    (bundle / "link.yaml").symlink_to(tmp_path / "private" / "secret.yaml")
    (bundle / "folder").symlink_to(tmp_path / "private")
    os.mkfifo(bundle / "pipe.yaml")
    loaded = load_snapshot(bundle)
    assert [item["metadata"]["name"] for item in loaded.items("", "pods")] == ["web"]  # type: ignore[index, call-overload]
