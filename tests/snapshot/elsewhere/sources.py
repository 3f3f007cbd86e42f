"""Opens a source in another tool's format as the commands do, and asks the built-in rules about it."""

from __future__ import annotations

import shutil
import tarfile
import zipfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from holmes.diagnosis.scan import ScanRequest, ScanResult, scan, with_more_logs
from holmes.kubernetes.client import ClusterClient
from holmes.redaction.redactor import Redactor
from holmes.snapshot.server.serving import serve_snapshot
from holmes.triage.looks import LookRequest, take_first_look, wanted_logs
from holmes.values.environment import Environment
from holmes.values.first_look import FirstLook
from tests.snapshot.elsewhere.record import RECORDED

FORMATS = ("cluster-info-dump", "kubectl-get", "must-gather.local.7079684121838056125", "support-bundle")
REDACTOR = Redactor(b"k" * 32)


@asynccontextmanager
async def client_of(source: Path) -> AsyncIterator[ClusterClient]:
    """A client for the served source."""
    async with serve_snapshot(source, redactor=REDACTOR) as server:
        environment = Environment.of({"KUBECONFIG": str(server.kubeconfig)})
        async with await ClusterClient.connect(environment) as client:
            yield client


async def scanned(source: Path) -> ScanResult:
    """Scan the whole source."""
    async with client_of(source) as client:
        return await scan(client, ScanRequest())


async def asked(source: Path, questions: Sequence[str]) -> list[FirstLook]:
    """What the built-in rules answer to each question, with the logs that they want."""
    async with client_of(source) as client:
        result = await scan(client, ScanRequest())
        looks = []
        for question in questions:
            request = LookRequest(question=question)
            read = await with_more_logs(client, result, lambda each, wanted=request: wanted_logs(wanted, each))  # type: ignore[misc]
            looks.append(take_first_look(request, read))
        return looks


def recorded(name: str) -> Path:
    return RECORDED / name


def tarred(folder: Path, target: Path, mode: str = "w:gz") -> Path:
    """The folder as a tar file with one folder at the top."""
    with tarfile.open(target, mode) as archive:  # type: ignore[call-overload]
        archive.add(folder, arcname=folder.name)
    return target


def zipped(folder: Path, target: Path) -> Path:
    """The content of the folder as a .zip file without a folder at the top."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                archive.write(file, file.relative_to(folder))
    return target


def copied(name: str, target: Path) -> Path:
    """A copy of a recorded source that a test may change."""
    shutil.copytree(recorded(name), target, symlinks=True)
    return target
