"""What cannot be used of manifests is said with its number and reason, and never dropped in silence."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest

from holmes.snapshot.formats.objects import FORMAT as OBJECTS
from holmes.snapshot.layouts import FileTree
from holmes.snapshot.sources import load_snapshot
from holmes.values.errors import ConfigError
from tests.snapshot.recordings import ask, names
from tests.support.command_line import Home

WEB = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\n"


def test_entries_that_are_no_objects_are_counted_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(f"---\n{WEB}---\n---\njust text\n---\n[3, {{kind: Pod, apiVersion: v1}}]\n")
    (tmp_path / "b.yaml").write_text("kind: Pod\nmetadata: {name: b}\n")
    items: list[object] = [{"metadata": {"name": "c"}}, None, "web", {"metadata": {}}]
    (tmp_path / "c.json").write_text(json.dumps({"apiVersion": "v1", "kind": "PodList", "items": items}))
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "values.yaml").write_text("replicas: 3\n")
    loaded = load_snapshot(tmp_path)
    assert names(loaded, "/api/v1/pods") == ["c", "web"]
    (note,) = loaded.notes
    assert note == (
        "8 entries are not valid Kubernetes objects and cannot be used (4 not an object in 'a.yaml', 'c.json'; "
        "2 without metadata.name in 'a.yaml', 'c.json'; 1 without apiVersion in 'b.yaml'; "
        "1 without kind in 'deep/values.yaml')"
    )


def test_many_files_with_the_same_reason_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "web.yaml").write_text(WEB)
    for number in range(9):
        (tmp_path / f"{number}.yaml").write_text("replicas: 3\n")
    expected = "(9 without kind in '0.yaml', '1.yaml', '2.yaml' and 6 more)"
    assert load_snapshot(tmp_path).notes[0].endswith(expected)


def test_files_that_are_not_read_are_counted_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "web.yaml").write_text(WEB)
    for name in ("README.txt", "table.csv", "a.png", "b.png"):
        (tmp_path / name).write_text("NAME READY")
    (note,) = load_snapshot(tmp_path).notes
    assert note == ("4 of 5 files are not of a known kind and were not read: 'README.txt', 'a.png', 'b.png' and 1 more")


def test_hidden_files_and_links_that_lead_out_are_counted_in_one_line(tmp_path: Path) -> None:
    bundle, elsewhere = tmp_path / "bundle", tmp_path / "elsewhere"
    (bundle / ".git").mkdir(parents=True)
    elsewhere.mkdir()
    (elsewhere / "other.yaml").write_text(WEB.replace("web", "other"))
    for name in ("web.yaml", ".git/config.yaml", ".hidden.yaml", ".DS_Store"):
        (bundle / name).write_text(WEB)
    (bundle / "again.yaml").symlink_to("web.yaml")
    (bundle / "more").symlink_to(elsewhere)
    (bundle / "other.yaml").symlink_to(elsewhere / "other.yaml")
    (bundle / "round.yaml").symlink_to("round.yaml")
    loaded = load_snapshot(bundle)
    assert names(loaded, "/api/v1/pods") == ["web"]
    (note,) = [each for each in loaded.notes if "hidden" in each]
    listed = "'.git', '.hidden.yaml', 'more' and 1 more"
    assert note == f"4 entries are hidden or links that lead out of the folder and were not read: {listed}"
    for name in (".git/config.yaml", ".hidden.yaml", "more"):
        (bundle / name).unlink()
    (bundle / ".git").rmdir()
    (note,) = [each for each in load_snapshot(bundle).notes if "hidden" in each]
    assert note == "1 entry is hidden or a link that leads out of the folder and was not read: 'other.yaml'"


def test_a_file_that_cannot_be_read_is_counted_and_the_others_are_used(tmp_path: Path) -> None:
    (tmp_path / "web.yaml").write_text(WEB)
    tree = FileTree.of(tmp_path, tmp_path)
    loaded = OBJECTS.load(replace(tree, files=(*tree.files, PurePosixPath("x.yaml"))))
    assert names(loaded, "/api/v1/pods") == ["web"]
    (note,) = loaded.notes
    assert note.startswith("1 file is not valid and was skipped: ")
    assert "x.yaml: cannot read the file: No such file or directory" in note
    (tmp_path / "web.yaml").unlink()
    (tmp_path / "web-0_app.log").write_text("started\n")
    logs = FileTree.of(tmp_path, tmp_path)
    loaded = OBJECTS.load(replace(logs, files=(*logs.files, PurePosixPath("web-1_app.log"))))
    assert "1 file is not valid and was skipped: " in " ".join(loaded.notes)
    assert [key.pod for key in loaded.logs] == ["web-0"]


@pytest.mark.parametrize(
    "content",
    [WEB, f"---\n---\n{WEB}---\n# only a comment\n", f"{WEB}---\n{{apiVersion: v1, kind: PodList, items: }}\n"],
    ids=["one", "empty documents", "empty list"],
)
def test_what_is_empty_is_not_counted(tmp_path: Path, content: str) -> None:
    (tmp_path / "web.yaml").write_text(content)
    assert load_snapshot(tmp_path).notes == ()


def test_an_object_that_is_defined_twice_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(f"{WEB}---\n{WEB}spec: {{nodeName: n2}}\n")
    loaded = load_snapshot(tmp_path)
    assert ask(loaded, "/api/v1/namespaces/default/pods/web").body["spec"] == {"nodeName": "n2"}
    assert loaded.notes == (
        "1 definition was replaced by a later definition of the same object (for example Pod 'default/web')",
    )


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.yaml", f"{WEB}kind: Service\n", "a.yaml:4: duplicate key 'kind'; first defined in line 2"),
        ("a.yaml", f"{WEB}spec:\n  - {{a: 1,\n     a: 2}}\n", "a.yaml:6: duplicate key 'a'; first defined in line 5"),
        ("a.yaml", f"{WEB}---\na: &x {{b: 1}}\nc: *x\na: 2\n", "a.yaml:7: duplicate key 'a'; first defined in line 5"),
        (
            "a.json",
            '{"kind": "Pod", "spec": {"a": 1, "b": 2, "a": 3}}',
            "a.json: duplicate key 'a'; remove one of them",
        ),
    ],
)
def test_a_duplicate_key_is_one_line_with_its_place(tmp_path: Path, name: str, content: str, expected: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(ConfigError) as caught:
        load_snapshot(tmp_path)
    assert str(caught.value) == f"{tmp_path}/{expected}"


def test_a_merge_key_may_be_overridden_and_repeated(tmp_path: Path) -> None:
    labels = "base: &base {x: '1', y: '1'}\nmore: &more {<<: *base, x: '2'}\n"
    (tmp_path / "a.yaml").write_text(
        f"{WEB}spec:\n  deep: {{deeper: [{{<<: *base, <<: *more}}]}}\n".replace(WEB, WEB + labels)
    )
    loaded = ask(load_snapshot(tmp_path), "/api/v1/namespaces/default/pods/web").body
    assert loaded["more"] == {"x": "2", "y": "1"}


def test_the_commands_say_what_they_cannot_use(tmp_path: Path) -> None:
    manifests = tmp_path / "manifests"
    manifests.mkdir()
    (manifests / "a.yaml").write_text(f"{WEB}---\nreplicas: 3\n")
    note = "1 entry is not a valid Kubernetes object and cannot be used (1 without kind in 'a.yaml')"
    home = Home.make(tmp_path / "home")
    shown = home.run("snapshot", "show", str(manifests)).stdout
    assert f"warning: {note}" in shown.splitlines()
    assert "everything was recorded" not in shown
    assert f"{manifests}: {note}" in home.run("scan", "--snapshot", str(manifests)).stderr.splitlines()
    (manifests / "a.yaml").write_text("replicas: 3\n")
    assert note in home.run("snapshot", "show", str(manifests)).stderr
