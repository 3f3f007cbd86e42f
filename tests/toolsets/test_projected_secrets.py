"""No field of an object shows a secret, however it is taken out of the object: alone, counted, encoded, in a column."""

from __future__ import annotations

import base64
import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
import yaml

from holmes.kubernetes.object_masking import ObjectMasker
from holmes.redaction.redactor import Redactor
from holmes.snapshot.server.serving import serve_snapshot
from holmes.toolsets.readiness import check_toolsets
from holmes.toolsets.registry import ToolsetContext
from holmes.toolsets.wrappers import Redacted
from holmes.toolsets.yaml.toolset import YamlToolset
from holmes.values.environment import Environment
from holmes.values.messages import ToolCallId
from holmes.values.tools import ToolInvocation
from tests.support.planted_forms import random_text
from tests.support.shipped import shipped_catalogue

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    from holmes.values.json_types import JsonValue
    from holmes.values.tools import ToolResult, Toolset

REDACTOR = Redactor(b"a key of the tests")
# Words as people choose them: nothing but the name says that they are secrets.
WORDS = (
    "tintenfisch",
    "staubsauger",
    "blaubeere",
    "holzhammer",
    "murmeltier",
    "kaltmamsell",
    "zwetschge",
    "quallenfisch",
)
ENV, CONFIG, SPEC, LISTED, OPTION, NESTED, LINE, TEMPLATE = WORDS
TOKEN = "gh" + "p_" + random_text("projected", 36)
KEPT = ("cache-size-megabytes", "postgres.shop.svc", "checkout-mode-fast")


def _pod_template(name: str) -> dict[str, JsonValue]:
    variables: list[JsonValue] = [
        {"name": "DB_PASSWORD", "value": ENV},
        {"name": "DB_HOST", "value": KEPT[1]},
        {"value": TEMPLATE, "name": "SMTP_PASSWORD"},
    ]
    container: dict[str, JsonValue] = {
        "name": name,
        "image": "registry.example.com/shop/checkout:1.2.3",
        "args": ["--mode", KEPT[2], "--db-password", OPTION, f"--token={TOKEN}"],
        "env": variables,
    }
    return {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}


OBJECTS: tuple[dict[str, JsonValue], ...] = (
    {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "checkout", "namespace": "shop", "annotations": {"ops.example.com/note": f"uses {TOKEN}"}},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": "checkout"}},
            "template": _pod_template("checkout"),
        },
    },
    {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "checkout.1", "namespace": "shop"},
        "involvedObject": {"kind": "Deployment", "name": "checkout", "namespace": "shop"},
        "type": "Warning",
        "reason": "Failed",
        "message": f"login with password={CONFIG} refused",
    },
    {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "checkout", "namespace": "shop"},
        "data": {
            "password": CONFIG,
            "cache": KEPT[0],
            "app.properties": f"mode=fast\nadmin.password={LINE}\nport=80\n",
        },
    },
    {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "vaults.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "vaults", "singular": "vault", "kind": "Vault", "listKind": "VaultList"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object"}},
                    "additionalPrinterColumns": [
                        {"name": "Pin", "type": "string", "jsonPath": ".spec.adminPassword"},
                        {"name": "Mode", "type": "string", "jsonPath": ".spec.mode"},
                    ],
                }
            ],
        },
    },
    {
        "apiVersion": "example.com/v1",
        "kind": "Vault",
        "metadata": {"name": "main", "namespace": "shop"},
        "spec": {
            "adminPassword": SPEC,
            "mode": KEPT[2],
            "passwords": [LISTED, "off"],
            "rootPassword": {"value": NESTED},
            "pins": {"password": 4711},
        },
    },
)
CALLS: tuple[tuple[str, Mapping[str, JsonValue]], ...] = (
    ("kubectl_columns", {"kind": "cm", "columns": "NAME:.metadata.name,P:.data.password,ALL:.data,C:.data.cache"}),
    ("kubectl_columns", {"kind": "deploy", "columns": "E:.spec.template.spec.containers[*].env[*].value"}),
    ("kubectl_columns", {"kind": "deploy", "columns": 'E:.spec..env[?(@.name=="DB_PASSWORD")].value'}),
    ("kubectl_columns", {"kind": "deploy", "columns": "A:.spec.template.spec.containers[0].args[*]"}),
    (
        "kubectl_columns",
        {"kind": "vaults", "columns": "A:.spec.adminPassword,B:.spec.passwords,C:.spec.rootPassword.*"},
    ),
    ("kubectl_count", {"kind": "cm", "by": ".data.password"}),
    ("kubectl_count", {"kind": "vaults", "by": ".spec.passwords[0]"}),
    ("kubectl_count", {"kind": "deploy", "by": ".spec.template.spec.containers[0].env[0].value"}),
    ("kubectl_jq", {"kind": "cm", "expression": ".items[].data | map(.) | @csv, @tsv, @html, @sh, @uri"}),
    ("kubectl_jq", {"kind": "cm,deploy,vaults", "expression": ".. | strings"}),
    ("kubectl_jq", {"kind": "cm,deploy,vaults", "expression": ".. | strings | @base64"}),
    ("kubectl_jq", {"kind": "cm,deploy,vaults", "expression": ".. | strings | explode | reverse | implode"}),
    ("kubectl_jq", {"kind": "cm,deploy,vaults", "expression": ".. | numbers"}),
    ("kubectl_jq", {"kind": "cm,deploy,vaults", "expression": "tojson | @base64"}),
    ("kubectl_jq", {"kind": "deploy", "name": "checkout", "expression": '[..|.value? // empty] | join(" ")'}),
    ("kubectl_get", {"kind": "vaults"}),
    ("kubectl_get", {"kind": "vaults", "output": "wide"}),
    ("kubectl_get", {"kind": "vaults,cm,deploy", "output": "yaml"}),
    ("kubectl_describe", {"kind": "deploy", "name": "checkout"}),
    ("kubectl_describe", {"kind": "cm", "name": "checkout"}),
)


def _forms(secret: str) -> tuple[str, ...]:
    """The secret as a view may show it. Of base64 only the middle, which is the same wherever it begins."""
    if len(secret) < 8:
        return (secret,)
    encoded = [
        base64.b64encode(b" " * pad + secret.encode()).decode()[4 : 4 * ((pad + len(secret)) // 3)] for pad in range(3)
    ]
    return (secret, secret[::-1], *encoded)


@asynccontextmanager
async def shipped_toolset(folder: Path, redactor: Redactor | None) -> AsyncIterator[Toolset]:
    """The kubectl tools as a run has them, over a cluster that holds the objects of this module."""
    (folder / "objects.yaml").write_text(yaml.safe_dump_all(OBJECTS))
    async with serve_snapshot(folder) as server:
        environment = Environment.of(
            {"PATH": os.environ["PATH"], "HOME": str(folder), "KUBECONFIG": str(server.kubeconfig)}
        ).with_variables({"HOLMES_KUBE_NAMESPACE": "shop"})
        catalogue = shipped_catalogue(environment)
        readiness = await check_toolsets(catalogue, ToolsetContext(environment=environment, redactor=redactor))
        toolset = next(each.toolset for each in readiness.ready if each.toolset.name == "kubernetes/core")
        yield Redacted(toolset, redactor) if redactor is not None else toolset


async def called(toolset: Toolset, name: str, arguments: Mapping[str, JsonValue]) -> ToolResult:
    tool = next(tool for tool in toolset.tools if tool.name == name)
    return await toolset.call(ToolInvocation(call_id=ToolCallId("c"), tool=tool, arguments=arguments))


async def test_no_projection_of_an_object_shows_a_secret(tmp_path: Path) -> None:
    shown = []
    async with shipped_toolset(tmp_path, REDACTOR) as toolset:
        for name, arguments in CALLS:
            result = await called(toolset, name, arguments)
            text = f"{result.data}{result.error}"
            shown.append(text)
            assert result.status == "success" or "is not supported at" in text, (name, arguments, text)
            for secret in (*WORDS, TOKEN, "4711"):
                found = [form for form in _forms(secret) if form in text]
                assert found == [], (name, arguments, text)
    for kept in KEPT:
        assert sum(kept in text for text in shown) >= 3, kept


async def test_placeholders_of_a_view_are_those_of_all_other_results(tmp_path: Path) -> None:
    async with shipped_toolset(tmp_path, REDACTOR) as toolset:
        result = await called(toolset, "kubectl_columns", {"kind": "cm", "columns": "P:.data.password"})
    assert result.data == f"P\n{REDACTOR.redact(f'password={CONFIG}').removeprefix('password=')}\n"


async def test_without_redaction_only_the_values_of_secrets_are_hidden(tmp_path: Path) -> None:
    async with shipped_toolset(tmp_path, None) as toolset:
        result = await called(toolset, "kubectl_columns", {"kind": "cm", "columns": "P:.data.password"})
    assert result.data == f"P\n{CONFIG}\n"


@pytest.mark.parametrize(
    "object_",
    [
        {"metadata": {"name": "web", "labels": {"app.kubernetes.io/name": "web"}}, "spec": {"replicas": 2}},
        {
            "env": [
                {"name": "TOKEN_FILE", "value": "/var/run/secrets/tokens/api"},
                {"name": "LOG_LEVEL", "value": "debug"},
            ]
        },
        {"env": [{"name": "DB_PASSWORD", "valueFrom": {"secretKeyRef": {"name": "shop-db", "key": "password"}}}]},
        {"tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}], "secretName": "shop-tls"},
        {
            "volumes": [
                {
                    "name": "kube-api-access-token",
                    "projected": {"sources": [{"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}]},
                }
            ]
        },
        {"resources": ["secrets", "tokenreviews"], "imagePullSecrets": [{"name": "registry-credentials"}]},
        {
            "data": {"maxTokens": "4096", "passwordPolicy": "strict", "secret_store": "vault"},
            "status": {"tokensUsed": 12},
        },
    ],
)
def test_objects_without_secrets_stay_as_they_are(object_: JsonValue) -> None:
    assert ObjectMasker(REDACTOR.redact).masked(object_) == object_


def test_a_document_that_masking_tears_apart_is_judged_text_by_text() -> None:
    def tearing(text: str) -> str:
        return text.replace('": "', '" (REDACTED) "') if "apart" in text else REDACTOR.redact(text)

    given: JsonValue = {"a": "tear this apart", "password": WORDS[0], "mode": "fast", "n": 1}
    masked = ObjectMasker(tearing).masked(given)
    assert isinstance(masked, dict)
    assert masked["a"] == "(REDACTED)"
    assert WORDS[0] not in str(masked)
    assert (masked["mode"], masked["n"]) == ("fast", 1)


async def test_all_views_use_the_redactor_of_the_run(tmp_path: Path) -> None:
    async with shipped_toolset(tmp_path, REDACTOR) as toolset:
        assert isinstance(toolset, Redacted)
        assert isinstance(toolset.inner, YamlToolset)
        assert toolset.inner.redactor is toolset.redactor is REDACTOR
