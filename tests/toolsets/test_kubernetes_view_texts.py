"""Copies of Secrets in text, however written, lose their values; what stands around them stays."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable

import pytest
import yaml

from holmes.kubernetes.fields import LAST_APPLIED
from holmes.toolsets.kubernetes_view import Json
from holmes.toolsets.kubernetes_view.secrets import masked_description, masked_text, without_secrets
from tests.support.views import view

_PLANTED = "hunter2-planted"
_COPY: Json = {"apiVersion": "v1", "kind": "Secret", "stringData": {"a": _PLANTED, "b": f"{_PLANTED}\n}}\n{_PLANTED}"}}
_WRITTEN = {
    "json": json.dumps(_COPY),
    "pretty json": json.dumps(_COPY, indent=2),
    "json without indentation": json.dumps({"data": {"a": _PLANTED, "b": _PLANTED}, "kind": "Secret"}, indent=0),
    "kind behind the data": json.dumps({"data": {"a": _PLANTED}, "kind": "Secret"}),
    "escaped json": json.dumps({"object": json.dumps(_COPY)}),
    "json escaped three times": json.dumps(json.dumps(json.dumps(json.dumps(_COPY)))),
    "yaml": yaml.safe_dump(_COPY),
    "yaml, block": f"kind: Secret\nstringData:\n  a: |\n    {_PLANTED}\n\n    {_PLANTED}\n",
    "yaml, quoted": f"'kind': 'Secret'\n'data': {{a: {_PLANTED},\n  b: {_PLANTED}}}\n",
    "yaml, in a list": f"items:\n- data:\n    a: {_PLANTED}\n  kind: Secret\n",
    "yaml, flow": yaml.safe_dump(_COPY, default_flow_style=True, width=40),
    "escaped yaml": json.dumps({"object": yaml.safe_dump(_COPY)}),
    "go": f"&{{map[apiVersion:v1 data:map[a:{_PLANTED}] kind:Secret]}}",
    "go, quoted": f'map["apiVersion":"v1" "data":map["a":"{_PLANTED}"] "kind":"Secret"]',
    "go struct": f"Secret{{TypeMeta:{{Kind:Secret,APIVersion:v1,}},Data:map[string][]byte{{a: {_PLANTED}}}}}",
    "description": f"Spec:\n  Data:\n    A:  {_PLANTED}\n  Kind:  Secret\n  String Data:\n    B:  {_PLANTED}",
    "list": json.dumps({"kind": "SecretList", "items": [{"data": {"a": _PLANTED}}]}),
    "decoder": f'Secret in version "v1": error found in #10 byte of ...|"a":"{_PLANTED}"|..., bigger {_PLANTED}',
}


@pytest.mark.parametrize("written", _WRITTEN)
def test_a_copy_in_a_text_loses_its_values_and_the_text_goes_on(written: str) -> None:
    text = f"before\napply failed: {_WRITTEN[written]}\n\nafter\n"
    for shown in (masked_text(text), masked_text(text.replace(": ", ":\n", 1)), view(["describe"], text)):
        assert _PLANTED not in shown
        assert "(hidden)" in shown
        assert shown.startswith("before\n")
        assert shown.endswith("\nafter\n")


@pytest.mark.parametrize("written", _WRITTEN)
def test_a_copy_in_any_text_of_an_object_loses_its_values(written: str) -> None:
    text = _WRITTEN[written]
    thing: Json = {"kind": "ConfigMap", "data": {"manifest": text}, "status": {"conditions": [{"message": text}]}}
    assert _PLANTED not in json.dumps(without_secrets(thing))
    assert _PLANTED not in view(["values"], json.dumps({"extraObjects": [text, _COPY]}))


@pytest.mark.parametrize(
    "text",
    [
        "kind: SecretStore\ndata:\n  a: b\n",
        "kind: ExternalSecret\ndata:\n  a: b\n",
        "kind: ConfigMap\ndata:\n  a: b\n",
        "Secret not found, data: none",
        'references {"kind":"Secret","name":"db"} which is missing',
        "kind: Secret\nmetadata:\n  name: db\nbinaryData: 3\nmydata: x",
        "spec.template.data: Required value",
    ],
)
def test_a_text_that_holds_no_values_of_a_secret_is_left_alone(text: str) -> None:
    assert masked_text(text) == text
    assert masked_description(text) == text


def _described(*annotations: str, rest: str) -> str:
    first, *others = (line for each in annotations for line in each.split("\n"))
    below = "".join(f"              {line}\n" for line in others)
    return f"Name:         x\nLabels:       <none>\nAnnotations:  {first}\n{below}{rest}"


_CUT = f'{{"apiVersion":"v1","data":{{"a":"{_PLANTED}","b":"xxx...'
_SECRET = "\nType:  Opaque\n\nData\n====\na:  7 bytes\n"
_CONFIG_MAP = "\nData\n====\na:\n----\nb\n"


def test_a_copy_that_was_cut_off_before_its_kind_is_hidden_on_any_object() -> None:
    described = _described(f"copy:\n  {_CUT}", "team: payments", f"zz: {_CUT[:40]}", rest=_CONFIG_MAP)
    shown = masked_description(described)
    assert shown == _described("copy: (hidden)", "team: payments", f"zz: {_CUT[:40]}", rest=_CONFIG_MAP)


def test_of_a_secret_every_long_annotation_is_hidden_and_short_ones_stay() -> None:
    described = _described("a: b", f"long:\n  line\n  {_PLANTED}", f'p: {{"data": "{_PLANTED}"}}', rest=_SECRET)
    assert masked_description(described) == _described("a: b", "long: (hidden)", "p: (hidden)", rest=_SECRET)
    harmless = _described("a: b", "long:\n  line\n  line", rest=_CONFIG_MAP)
    assert masked_description(harmless) == harmless


def test_annotations_of_a_pod_template_are_looked_at_too() -> None:
    described = f"Pod Template:\n  Annotations:  copy:\n                  {_CUT}\n                z: y\n  Containers:\n"
    assert masked_description(described) == (
        "Pod Template:\n  Annotations:  copy: (hidden)\n                z: y\n  Containers:\n"
    )


def test_the_token_of_a_service_account_is_hidden_and_a_key_of_that_name_is_not() -> None:
    assert masked_description(f"Data\n====\nca.crt:  9 bytes\ntoken:      {_PLANTED}\n") == (
        "Data\n====\nca.crt:  9 bytes\ntoken:  (hidden)\n"
    )
    assert masked_description("Data\n====\ntoken:\n----\n1\n") == "Data\n====\ntoken:\n----\n1\n"


def test_the_events_after_one_that_quotes_a_secret_stay() -> None:
    row = "  Warning  Failed  3s (x2 over 5m)  flux  "
    events = f"Events:\n{row}{_WRITTEN['yaml']}{row}next\n  Normal   Synced  1s  flux  last\n"
    shown = masked_description(events)
    assert _PLANTED not in shown
    assert shown.endswith(f"{row}next\n  Normal   Synced  1s  flux  last\n")


@pytest.mark.parametrize("form", ["text", "describe", "status"])
def test_text_without_a_secret_comes_out_as_it_went_in(form: str) -> None:
    table = "NAME  READY   \nweb   1/1\n"
    assert view([form], table) == table


_MANIFEST: Json = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "stringData": {"p": _PLANTED}}
_TEXTS_WITH_SECRETS = [
    json.dumps(_MANIFEST),
    json.dumps(json.dumps(_MANIFEST)),
    json.dumps({"patch": json.dumps({"inner": json.dumps(_MANIFEST)})}),
    json.dumps({"kind": "SecretList", "items": [{"data": {"p": _PLANTED}}]}),
    f"kind: Secret\nmetadata:\n  name: a\nstringData:\n  p: {_PLANTED}\n",
    f"apiVersion: v1\nstringData: {{p: {_PLANTED}}}\nkind: 'Secret'\n",
    f"kind: ConfigMap\ndata: {{}}\n---\nkind: Secret\nstringData:\n  p: |\n    line\n    {_PLANTED}\n",
]


@pytest.mark.parametrize("text", _TEXTS_WITH_SECRETS)
@pytest.mark.parametrize(
    "around",
    [
        lambda text: {"kind": "Manifest", "spec": {"raw": text}},
        lambda text: {"kind": "ConfigMap", "data": {"secret.yaml": text}},
        lambda text: {"kind": "Pod", "metadata": {"name": "x", "annotations": {"copy": text}}},
        lambda text: {"kind": "Secret", "metadata": {"name": "x", "annotations": {"copy": text}}},
        lambda text: {"kind": "Job", "spec": {"args": ["apply", text]}},
    ],
    ids=["custom resource", "config map", "annotation", "annotation of a secret", "argument"],
)
def test_a_manifest_of_a_secret_inside_of_a_text_is_found(text: str, around: Callable[[str], Json]) -> None:
    assert _PLANTED not in json.dumps(without_secrets(around(text)))


@pytest.mark.parametrize(
    ("name", "text", "shown"),
    [
        ("tool/applied", f'{{"password":"{_PLANTED}"}}', "(hidden)"),
        ("tool/applied", f"password: {_PLANTED}", "(hidden)"),
        ("tool/applied", f"a\n{_PLANTED}", "(hidden)"),
        ("tool/applied", base64.b64encode(f'{{"p":"{_PLANTED}"}}'.encode()).decode(), "(hidden)"),
        ("tool/db-password", _PLANTED, "(hidden)"),
        (LAST_APPLIED, _PLANTED, None),
        ("team", "payments", "payments"),
        ("kubernetes.io/service-account.name", "default", "default"),
        ("cert-manager.io/issuer-name", "ca", "ca"),
        ("reloaded-at", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
    ],
)
def test_of_the_annotations_of_a_secret_only_plain_words_are_shown(name: str, text: str, shown: str | None) -> None:
    secret: Json = {"kind": "Secret", "metadata": {"name": "a", "annotations": {name: text, "plain": "x"}}}
    cleaned = without_secrets(secret)
    expected: Json = {"plain": "x"} if shown is None else {name: shown, "plain": "x"}
    assert cleaned == {"kind": "Secret", "metadata": {"name": "a", "annotations": expected}}
