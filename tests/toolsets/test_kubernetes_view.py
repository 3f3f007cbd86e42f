"""The values of Secrets never come out of the view, in no form and from no place; everything else does."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from holmes.kubernetes.fields import LAST_APPLIED
from holmes.toolsets.kubernetes_view import Json, ViewError
from holmes.toolsets.kubernetes_view.__main__ import show_jq
from holmes.toolsets.kubernetes_view.helm import masked_values
from holmes.toolsets.kubernetes_view.layouts import parse_columns, parse_path, show_columns, show_count
from holmes.toolsets.kubernetes_view.secrets import without_secrets

_PLANTED = "hunter2-planted"
_ENCODED = base64.b64encode(_PLANTED.encode()).decode()


def _secret(name: str = "db") -> dict[str, Json]:
    applied = json.dumps({"kind": "Secret", "stringData": {"password": _PLANTED}})
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": name,
            "namespace": "shop",
            "annotations": {LAST_APPLIED: applied, "kapp.k14s.io/original": applied, "team": "payments"},
            "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:data": {}}}],
        },
        "type": "Opaque",
        "data": {"password": _ENCODED},
        "stringData": {"other": _PLANTED},
    }


def _pod(name: str, phase: str) -> dict[str, Json]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app.kubernetes.io/name": "web"}, "managedFields": [{"manager": "m"}]},
        "spec": {"containers": [{"name": "a", "image": "web:1"}, {"name": "b", "image": "proxy:2"}]},
        "status": {"phase": phase, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def _list(*items: Json, kind: str = "List") -> dict[str, Json]:
    return {"apiVersion": "v1", "kind": kind, "items": list(items)}


_SHAPES: dict[str, Json] = {
    "one": _secret(),
    "list": _list(_secret("a"), _secret("b")),
    "secret list": _list(_secret(), kind="SecretList"),
    "mixed": _list(_pod("web", "Running"), _secret()),
    "list of lists": _list(_list(_secret(), kind="SecretList"), _list(_pod("web", "Running"), kind="PodList")),
    "inside another object": {"kind": "Template", "objects": [_secret()]},
    "copied into an annotation": {
        "kind": "Bundle",
        "metadata": {"name": "x", "annotations": {"bundle/copy": json.dumps(_secret())}},
    },
}
_VIEWS = (
    ["yaml"],
    ["jq", "."],
    ["jq", ".. | strings"],
    ["jq", "[paths], [getpath(paths)], tostring, @base64, @json"],
    ["jq", ".items[]?.data, .data, .stringData, .metadata.annotations"],
    ["columns", "ALL:.metadata.annotations,DATA:.data.password,STAR:.data.*,TEXT:.stringData"],
    ["columns", "EVERYTHING:[*],METADATA:.metadata"],
    ["count", ".data.password"],
    ["count", ".metadata.annotations"],
    ["manifest"],
)


def _view(arguments: list[str], text: str, *, objects: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    """What the process of its own shows; the same forms in this process are in the tests of texts, values and helm."""
    form, argument = (*arguments, "")[:2]
    request = {"form": form, "text": text, "argument": argument, "objects": objects, "key": ""}
    return subprocess.run(
        [sys.executable, "-I", "-m", "holmes.toolsets.kubernetes_view"],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        env={"PATH": os.environ["PATH"], **variables},
    )


@pytest.mark.parametrize("shape", _SHAPES)
@pytest.mark.parametrize("arguments", _VIEWS, ids=" ".join)
def test_no_view_of_any_shape_shows_a_secret_value(shape: str, arguments: list[str]) -> None:
    done = _view(arguments, json.dumps(_SHAPES[shape]))
    assert done.returncode == 0 or "jq:" in done.stderr
    for planted in (_PLANTED, _ENCODED, base64.b64encode(_ENCODED.encode()).decode()):
        assert planted not in done.stdout + done.stderr


_KEYS = st.sampled_from(["kind", "data", "stringData", "metadata", "annotations", "items", "x", LAST_APPLIED])
_TREES = st.recursive(
    st.sampled_from(["Secret", "Pod", "List", "y", None, 1, True]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=200, deadline=None)
@example(around="y", field="data", value={"kind": "Secret", "stringData": {"x": "y"}})
@given(_TREES, st.sampled_from(["data", "stringData"]), _TREES)
def test_a_secret_is_found_wherever_it_hides_in_a_random_object(around: Json, field: str, value: Json) -> None:
    hidden: Json = {"kind": "Secret", field: {"k": _PLANTED, "tree": value}, "metadata": {"annotations": value}}
    wrapped: Json = {"x": [around, {"items": [hidden]}], "y": around}
    assert _PLANTED not in json.dumps(without_secrets(wrapped))


def test_of_a_secret_the_names_of_its_keys_stay() -> None:
    shown = without_secrets(_secret())
    assert shown == {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": "db",
            "namespace": "shop",
            "annotations": {"kapp.k14s.io/original": "(hidden)", "team": "payments"},
        },
        "type": "Opaque",
        "dataKeys": ["other", "password"],
    }


def test_other_objects_lose_only_the_noise() -> None:
    pod = _pod("web", "Running")
    shown = without_secrets(pod)
    assert isinstance(shown, dict)
    assert shown["spec"] == pod["spec"]
    assert shown["metadata"] == {"name": "web", "labels": {"app.kubernetes.io/name": "web"}}
    config_map: Json = {"kind": "ConfigMap", "data": {"a": "b"}}
    assert without_secrets(config_map) == config_map


@pytest.mark.parametrize(
    ("specification", "table"),
    [
        (
            "NAME:.metadata.name,PHASE:.status.phase",
            "NAME  PHASE\nweb   Running\napi   Pending\n",
        ),
        ("I:.spec.containers[*].image", "I\nweb:1,proxy:2\nweb:1,proxy:2\n"),
        ("F:.spec.containers[0].name,L:.spec.containers[-1].name", "F  L\na  b\na  b\n"),
        ('R:.status.conditions[?(@.type=="Ready")].status', "R\nTrue\nTrue\n"),
        ("R:.spec.containers[?(@.name!='a')].image", "R\nproxy:2\nproxy:2\n"),
        (r"A:.metadata.labels.app\.kubernetes\.io/name", "A\nweb\nweb\n"),
        ("A:.metadata.labels['app.kubernetes.io/name']", "A\nweb\nweb\n"),
        ("A:.no.such,B:.spec.containers[9].x", "A       B\n<none>  <none>\n<none>  <none>\n"),
        ("N:metadata.name,M:{.metadata.name}", "N    M\nweb  web\napi  api\n"),
        ("L:.metadata.labels", 'L\n{"app.kubernetes.io/name": "web"}\n{"app.kubernetes.io/name": "web"}\n'),
    ],
)
def test_columns_are_written_as_for_kubectl(specification: str, table: str) -> None:
    pods = without_secrets(_list(_pod("web", "Running"), _pod("api", "Pending")))
    assert show_columns(pods, specification) == table


@pytest.mark.parametrize("specification", ["", "NAME", ":.a", "A:.a[", "A:.a[?(@.x>1)]", "A:.a..b", "A:.a b"])
def test_columns_that_are_not_understood_say_so(specification: str) -> None:
    with pytest.raises(ViewError):
        parse_columns(specification)


def test_a_path_finds_false_and_zero_but_no_null() -> None:
    assert parse_path(".a[*].b").find({"a": [{"b": False}, {"b": 0}, {"b": None}, {}]}) == [False, 0]


def test_counting_is_total_or_by_value() -> None:
    pods = _list(_pod("a", "Running"), _pod("b", "Running"), _list(_pod("c", "Pending"), kind="PodList"))
    assert show_count(pods, None) == "3\n"
    assert show_count(pods, ".status.phase") == "COUNT  .status.phase\n2      Running\n1      Pending\ntotal 3\n"
    assert show_count(_list(), None) == "0\n"
    assert show_count(_pod("a", "Running"), None) == "1\n"


def test_jq_sees_no_variables_of_the_process() -> None:
    done = _view(["jq", "env, $ENV, env.PLANTED"], "{}", PLANTED=_PLANTED, HOME="/root")
    assert done.stdout == "{}\n{}\nnull\n"


@pytest.mark.parametrize(
    "expression",
    [
        'import "a" as $a; $a',
        'include "a"; .',
        'import "config" as $c {search: "/"}; $c',
        '  # comment\n\timport "a" as $a; $a',
        '# comment " \r import "a" as $a; $a',
        'module {}; import "a" as $a; $a',
        '# x \\\n1\nimport "a" as $a; $a',
        'import"a"as$a;$a',
        '"a" | modulemeta',
        "get_search_list",
    ],
)
def test_jq_reads_no_files(expression: str) -> None:
    with pytest.raises(ViewError, match=r"modules are not available|cannot end with a backslash"):
        show_jq("{}", expression)


@pytest.mark.parametrize(
    ("expression", "shown"),
    [
        (".a", "1\n"),
        ('.b | "it imports \\(.)"', "it imports include\n"),
        (".import", "null\n"),
        ("empty", ""),
        (".a, .b, .c", '1\ninclude\n{"ü": "ü"}\n'),
    ],
)
def test_jq_shows_one_result_per_line(expression: str, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # The view empties the variables of its process; here that is ours.
    for name in list(os.environ):
        monkeypatch.setenv(name, os.environ[name])
    assert show_jq('{"a": 1, "b": "include", "c": {"ü": "ü"}}', expression) == shown


def test_a_wrong_expression_is_an_error_of_one_program_line() -> None:
    done = _view(["jq", ".a("], "{}")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("jq: ")
    assert "Traceback" not in done.stderr


def test_broken_input_shows_nothing() -> None:
    done = _view(["yaml"], f"password: {_PLANTED}")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "the output of kubectl is not JSON\n")
    done = _view(["manifest"], f"kind: Secret\n data: {{p: {_PLANTED}}}: x")
    assert (done.returncode, done.stdout) == (1, "")
    assert _PLANTED not in done.stderr
    assert _view(["yaml"], json.dumps(_list())).stdout == ""


def test_an_object_of_two_kinds_is_not_shown() -> None:
    done = _view(["yaml"], '{"kind": "Secret", "kind": "ConfigMap", "data": {"password": "x"}}')
    assert (done.returncode, done.stdout) == (1, "")
    assert "duplicate key 'kind'" in done.stderr


def test_manifests_of_several_documents_lose_only_secret_values() -> None:
    text = f"# c\nkind: Secret\nstringData:\n  p: {_PLANTED}\n---\nkind: ConfigMap\ndata:\n  a: b\n---\n"
    assert _view(["manifest"], text).stdout == "kind: Secret\ndataKeys:\n- p\n---\nkind: ConfigMap\ndata:\n  a: b\n"


def test_helm_values_hide_what_sounds_secret_and_keep_the_rest() -> None:
    values: Json = {
        "image": {"tag": "1"},
        "replicas": 2,
        "postgresql": {"auth": {"password": _PLANTED, "existingSecret": "db", "username": "u"}},
        "apiKey": _PLANTED,
        "tokens": [_PLANTED, {"value": _PLANTED}],
        "secretName": "tls",
        "url": f"postgres://user:{_PLANTED}@db/x",
        "secrets": {"enabled": True, "deep": {"x": _PLANTED}},
        "emptyPassword": "",
        "env": [{"name": "DB_PASSWORD", "value": _PLANTED}, {"name": "MODE", "value": "fast"}],
        "basicAuth": _PLANTED,
    }
    shown = masked_values(values)
    assert _PLANTED not in json.dumps(shown)
    assert isinstance(shown, dict)
    assert shown["image"] == {"tag": "1"}
    assert shown["replicas"] == 2
    assert shown["secretName"] == "tls"
    assert shown["emptyPassword"] == ""
    assert shown["env"] == [{"name": "DB_PASSWORD", "value": "(hidden)"}, {"name": "MODE", "value": "fast"}]
    assert shown["url"] == "postgres://user:(hidden)@db/x"
    assert "username: u" in _view(["values"], json.dumps(values)).stdout


def test_jq_on_objects_that_are_masked_already_loads_little() -> None:
    request = json.dumps({"form": "jq", "text": "{}", "argument": ".", "key": None})
    command = [sys.executable, "-I", "-X", "importtime", "-m", "holmes.toolsets.kubernetes_view"]
    environment = {"PATH": os.environ["PATH"]}  # coverage follows processes by a variable, and loads much
    done = subprocess.run(command, input=request, text=True, check=True, capture_output=True, env=environment)
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "jq" in loaded
    assert not {name.partition(".")[0] for name in loaded} & {"yaml", "regex", "pydantic", "asyncio", "base64"}


def test_the_items_of_a_secret_list_are_secrets_without_saying_so() -> None:
    item: Json = {"metadata": {"name": "db", "annotations": {"note": _PLANTED * 20}}, "data": {"p": _ENCODED}}
    listed: Json = {"kind": "SecretList", "items": [item]}
    backup: Json = {"kind": "Backup", "spec": {"saved": [listed]}}
    for value in (listed, backup):
        shown = json.dumps(without_secrets(value))
        assert _PLANTED not in shown
        assert _ENCODED not in shown
        assert '"dataKeys": ["p"]' in shown


def test_a_template_of_a_secret_shows_only_the_names_of_its_keys() -> None:
    template: Json = {"kind": "SealedSecret", "spec": {"template": {"type": "Opaque", "stringData": {"p": _PLANTED}}}}
    shown: Json = {"type": "Opaque", "dataKeys": ["p"]}
    assert without_secrets(template) == {"kind": "SealedSecret", "spec": {"template": shown}}


def test_a_table_loses_the_values_that_the_objects_behind_it_hide() -> None:
    behind = _list(_secret("a"), {"kind": "Vault", "spec": {"stringData": {"pin": "47", "n": 815, "j": "<x>&secret"}}})
    lines = [
        "NAME  PIN  OTHER",
        '1/47  {"pin":"47"} map[pin:47]',
        f"a47   47   {_PLANTED}",
        f"b     815  {_ENCODED}",
        r"c     1    \u003cx\u003e\u0026secret",
    ]
    done = _view(["table"], "\n".join(lines) + "\n", objects=json.dumps(behind))
    rows = [line.split() for line in done.stdout.splitlines()]
    assert rows == [
        ["NAME", "PIN", "OTHER"],
        ["1/47", '{"pin":"(hidden)"}', "map[pin:(hidden)]"],
        ["a47", "(hidden)", "(hidden)"],
        ["b", "(hidden)", "(hidden)"],
        ["c", "1", "(hidden)"],
    ]


@pytest.mark.parametrize("behind", ["", "error", '{"items": [{'])
def test_a_table_whose_objects_cannot_be_read_is_not_shown(behind: str) -> None:
    done = _view(["table"], f"NAME\n{_PLANTED}\n", objects=behind)
    assert (done.returncode, done.stdout) == (1, "")
    assert "is not shown" in done.stderr


def test_a_description_hides_templates_of_secrets_and_annotations_that_sound_secret() -> None:
    template = f"Kind:  Sealed\nSpec:\n  Template:\n    String Data:\n      Password:  {_PLANTED}\n  Mode:  fast\n"
    shown = _view(["describe"], template).stdout
    assert _PLANTED not in shown
    assert "Mode:  fast" in shown
    annotations = (
        f'Annotations:  db/password: {_PLANTED}\n              j: {{"p":"{_PLANTED}"}}\n              team: payments\n'
    )
    shown = _view(["describe"], f"Name:         db\n{annotations}\nType:  Opaque\n\nData\n====\np:  8 bytes\n").stdout
    assert _PLANTED not in shown
    assert "team: payments" in shown
    assert "p:  8 bytes" in shown
