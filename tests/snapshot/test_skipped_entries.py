"""What cannot be used of manifests is said with its number and reason, and never dropped in silence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

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
