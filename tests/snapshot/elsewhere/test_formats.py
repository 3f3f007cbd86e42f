"""The same broken shop gives the same causes in every format, and what a format lacks is not checked."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Final

import pytest

from holmes.diagnosis.usage import read_usage
from holmes.snapshot.sources import load_snapshot
from tests.snapshot.elsewhere.sources import FORMATS, asked, client_of, copied, recorded, scanned, tarred, zipped
from tests.snapshot.recordings import ask
from tests.support.command_line import Home

CAUSES = {
    ("Deployment", "checkout"): "FATAL: could not connect to ledger.bank.example:5432",
    ("Secret", "payments-token"): "requires this key",
    ("Deployment", "search"): "requests 64 cpu, but the largest node offers 2",
}
LACKING = {
    "cluster-info-dump": ("which ingresses are there?", "Ingress could not be read"),
    "kubectl-get": ("which configmaps are there in shop?", "ConfigMap could not be read"),
    "must-gather.local.7079684121838056125": ("which ingresses are there in shop?", "Ingress could not be read"),
    "support-bundle": ("is the secret payments-token there?", "Secret could not be read"),
}


@pytest.mark.parametrize("name", FORMATS)
async def test_the_causes_are_found_and_the_innocents_stay_innocent(name: str) -> None:
    report = (await scanned(recorded(name))).report
    found = {(each.culprit.kind, each.culprit.name): f"{each.title} {each.cause}" for each in report.incidents}
    assert found.keys() == CAUSES.keys()
    assert all(text in found[culprit] for culprit, text in CAUSES.items()), found


@pytest.mark.parametrize("name", FORMATS)
async def test_a_question_gets_the_cause_and_a_lacking_kind_is_not_known(name: str) -> None:
    question, lacking = LACKING[name]
    looks = await asked(recorded(name), ["why does checkout crash?", "is web in shop healthy?", question])
    cause, healthy, unknown = looks
    assert "could not connect to ledger.bank.example:5432" in cause.summary
    assert (healthy.verdict, "web" in healthy.summary) == ("healthy", True)
    assert unknown.verdict == "inconclusive"
    assert lacking in unknown.summary


def test_the_commands_take_archives_and_name_what_is_not_checked(tmp_path: Path) -> None:
    home = Home.make(tmp_path / "home")
    gathered = tarred(recorded(FORMATS[2]), tmp_path / "must-gather.tar.gz")
    done = home.run("scan", "--snapshot", str(gathered))
    assert done.exit_code == 0, done.stderr
    assert "FATAL: could not con" in done.stdout
    assert "not checked" in done.stdout
    printed = zipped(recorded("kubectl-get"), tmp_path / "printed.zip")
    done = home.run("ask", "-n", "--snapshot", str(printed), "why does payments in shop not start?")
    assert "payments-token" in done.stdout
    assert "Not checked:" in done.stdout


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("depth", [1, 3])
def test_top_folders_and_the_kind_of_archive_do_not_matter(name: str, depth: int, tmp_path: Path) -> None:
    wrapped = tmp_path / "top" / "/".join(["inner"] * (depth - 1)) / name
    wrapped.parent.mkdir(parents=True)
    shutil.copytree(recorded(name), wrapped, symlinks=True)
    expected = load_snapshot(recorded(name))
    mode = "w" if depth == 1 else "w:xz"
    archive = tarred(tmp_path / "top", tmp_path / "archive.of.a.customer", mode)
    (tmp_path / "scratch").mkdir()
    found = load_snapshot(archive, scratch=tmp_path / "scratch")
    assert (found.context, found.recorded_at, found.objects) == (
        expected.context,
        expected.recorded_at,
        expected.objects,
    )
    assert found.logs.keys() == expected.logs.keys()


def test_a_kind_of_a_namespace_that_is_not_listed_is_an_error_and_a_gap(tmp_path: Path) -> None:
    folder = copied(FORMATS[2], tmp_path / "gathered")
    (image,) = (each for each in folder.iterdir() if (each / "namespaces").is_dir())
    (image / "namespaces" / "books" / "core" / "pods.yaml").unlink()
    shutil.rmtree(image / "namespaces" / "books" / "pods")
    loaded = load_snapshot(folder)
    assert ask(loaded, "/api/v1/namespaces/books/pods").status_code == 403
    assert ask(loaded, "/api/v1/namespaces/shop/pods").status_code == 200
    everywhere = ask(loaded, "/api/v1/pods").body["metadata"]
    assert [each["namespace"] for each in everywhere["notRecorded"]] == ["books"]


async def test_a_broken_file_is_named_and_its_kind_is_not_checked(tmp_path: Path) -> None:
    folder = copied(FORMATS[2], tmp_path / "gathered")
    (pods,) = folder.glob("*/namespaces/shop/apps/replicasets.yaml")
    pods.write_text(pods.read_text()[:2_000] + "\n}{\n")
    loaded = load_snapshot(folder)
    note, others = loaded.notes
    assert others.startswith("4 of 59 files are not of a known kind and were not read: 'event-filter.html', ")
    assert "1 file is not valid and was skipped" in note
    assert f"{pods}:" in note
    report = (await scanned(folder)).report
    (gap,) = (each for each in report.not_checked if each.kinds == ("ReplicaSet",))
    assert "shop" in gap.what
    assert str(pods) in gap.why
    assert ("Deployment", "search") in {(each.culprit.kind, each.culprit.name) for each in report.incidents}


async def test_the_usage_in_a_bundle_is_read_and_without_it_not_checked(tmp_path: Path) -> None:
    async with client_of(recorded("support-bundle")) as client:
        usage = await read_usage(client)
    used = {f"{ref.kind} {ref.name.split('-')[0]}": set(amounts) for ref, amounts in usage.amounts.items()}
    assert usage.unread == ()
    assert used["Node node1"] == used["Pod web"] == {"cpu", "memory"}
    assert all(ref.namespace in ("", "shop", "books") for ref in usage.amounts)
    (recorded_file,) = recorded("support-bundle").glob("node-metrics/*.json")
    folder = copied("support-bundle", tmp_path / "bundle")
    (folder / "node-metrics" / recorded_file.name).unlink()
    async with client_of(folder) as client:
        usage = await read_usage(client)
    assert usage.amounts == {}
    assert [each.what for each in usage.unread] == ["usage of Pods (metrics.k8s.io)", "usage of Nodes (metrics.k8s.io)"]


_LIST_OF: Final = '{{{{"kind": "List", "apiVersion": "v1", "items": [{}]}}}}'
"""A list for `str.format`, which a test formats once more with its objects."""


@pytest.mark.parametrize(
    ("files", "gaps"),
    [
        ({"one.json": "{0}"}, {("namespaces", ""), ("pods", "")}),
        ({"twice.json": "{0}\n{1}"}, {("namespaces", ""), ("pods", "")}),
        ({"list.json": '{{"kind": "List", "apiVersion": "v1", "items": [{0}]}}'}, {("namespaces", "")}),
        (
            {"list.json": '{{"kind": "List", "apiVersion": "v1", "items": [{0}]}}', "service.json": "{2}"},
            {("namespaces", ""), ("pods", "books"), ("services", "")},
        ),
        (
            {"runs.json": f"{_LIST_OF.format('{0}')}{_LIST_OF.format('{2}')}"},
            {("namespaces", ""), ("pods", "books"), ("services", "shop")},
        ),
        (
            {"array.json": f"[{_LIST_OF.format('{0}')}, {_LIST_OF.format('{2}')}]"},
            {("namespaces", ""), ("pods", "books"), ("services", "shop")},
        ),
        ({"all.json": '{{"kind": "List", "apiVersion": "v1", "items": [{0}, {1}, {2}]}}'}, {("namespaces", "")}),
    ],
    ids=[
        "one object",
        "two objects",
        "one namespace",
        "another namespace",
        "runs in a file",
        "runs in an array",
        "all",
    ],
)
def test_what_kubectl_printed_is_complete_only_where_a_list_says_so(
    tmp_path: Path, files: dict[str, str], gaps: set[tuple[str, str]]
) -> None:
    objects = [
        json.dumps({"apiVersion": "v1", "kind": kind, "metadata": {"name": "x", "namespace": namespace, "uid": uid}})
        for kind, namespace, uid in (("Pod", "shop", "1"), ("Pod", "books", "2"), ("Service", "books", "3"))
    ]
    for name, content in files.items():
        (tmp_path / name).write_bytes(content.format(*objects).encode("utf-16"))
    loaded = load_snapshot(tmp_path)
    assert {(each.resource, each.namespace) for each in loaded.unread} == gaps
    assert loaded.namespaces == (("books", "shop") if "{1}" in str(files) or "{2}" in str(files) else ("shop",))
