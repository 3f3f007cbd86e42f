"""Which cluster is meant: kubeconfig files, contexts, the service account of a pod, and every way to get them wrong."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest

from holmes.kubernetes.kubeconfig import load_access
from holmes.values.environment import Environment
from holmes.values.errors import ClusterUnreachable, ConfigError

Json = dict[str, Any]


def _config(*, context: str = "dev", current: str | None = "dev", server: str = "https://dev", **user: object) -> Json:
    return {
        **({"current-context": current} if current else {}),
        "contexts": [{"name": context, "context": {"cluster": f"{context}-c", "user": f"{context}-u"}}],
        "clusters": [{"name": f"{context}-c", "cluster": {"server": server}}],
        "users": [{"name": f"{context}-u", "user": user}],
    }


def _write(path: Path, content: Json) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))
    return path


def _environment(*files: Path, **variables: str) -> Environment:
    return Environment.of({"KUBECONFIG": os.pathsep.join(map(str, files)), **variables})


def test_the_first_of_several_files_wins_as_in_kubectl(tmp_path: Path) -> None:
    first = _write(tmp_path / "a", _config(server="https://first"))
    second = _write(tmp_path / "b", {**_config(server="https://second"), "current-context": "other"})
    missing = tmp_path / "missing"

    access = load_access(_environment(missing, first, second))

    assert (access.context, access.cluster.server) == ("dev", "https://first")


def test_a_context_of_a_later_file_can_be_chosen_and_its_files_are_relative_to_it(tmp_path: Path) -> None:
    first = _write(tmp_path / "a" / "config", _config())
    second = _write(tmp_path / "b" / "config", _config(context="prod", server="https://prod", tokenFile="token"))

    access = load_access(_environment(first, second, HOLMES_KUBE_CONTEXT="prod", HOLMES_KUBE_NAMESPACE="shop"))

    assert (access.cluster.server, access.namespace) == ("https://prod", "shop")
    assert access.user.token_file == tmp_path / "b" / "token"


def test_the_default_file_is_in_the_home_of_the_environment_not_of_the_process(tmp_path: Path) -> None:
    _write(tmp_path / ".kube" / "config", _config())

    assert load_access(Environment.of({"HOME": str(tmp_path)})).context == "dev"


def test_certificates_are_taken_from_data_and_the_namespace_defaults(tmp_path: Path) -> None:
    config = _config()
    config["clusters"][0]["cluster"]["certificate-authority-data"] = base64.b64encode(b"PEM").decode()

    access = load_access(_environment(_write(tmp_path / "c", config)))

    assert access.cluster.authority.read() == b"PEM"
    assert access.namespace == "default"


def test_a_pod_uses_its_service_account(tmp_path: Path) -> None:
    for name, content in (("token", "secret"), ("ca.crt", "PEM"), ("namespace", "monitoring")):
        (tmp_path / name).write_text(content)
    environment = Environment.of({"HOME": "/nowhere", "KUBERNETES_SERVICE_HOST": "fd00::1"})

    access = load_access(environment, service_account=tmp_path)

    assert access.cluster.server == "https://[fd00::1]:443"
    assert (access.context, access.namespace) == ("in-cluster", "monitoring")
    assert access.is_service_account
    assert access.user.token_file == tmp_path / "token"


@pytest.mark.parametrize("variables", [{"HOME": "/nowhere"}, {"HOME": "/nowhere", "KUBECONFIG": "/nowhere/x"}])
def test_no_configuration_is_one_line_that_says_where_it_looked(variables: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(ClusterUnreachable, match=r"No cluster is configured: .*'/nowhere/.*set KUBECONFIG") as caught:
        load_access(Environment.of(variables), service_account=tmp_path)

    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 3


def test_an_unknown_context_names_the_nearest(tmp_path: Path) -> None:
    file = _write(tmp_path / "c", _config(context="production", current="production"))

    with pytest.raises(ConfigError, match=r"context 'prodction' is not in .* did you mean 'production'\?"):
        load_access(_environment(file, HOLMES_KUBE_CONTEXT="prodction"))


def test_broken_yaml_names_file_and_line(tmp_path: Path) -> None:
    file = tmp_path / "c"
    file.write_text("contexts:\n- name: [\n")

    with pytest.raises(ConfigError, match=rf"kubeconfig '{file}', line \d+: "):
        load_access(_environment(file))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "expected a mapping, found list"),
        (json.dumps(_config(current=None)), r"has no current-context; choose one with --context: 'dev'"),
        (json.dumps({**_config(), "clusters": None}), r"uses cluster 'dev-c', which does not define a server"),
        (json.dumps({**_config(), "users": []}), r"uses user 'dev-u', which is not defined"),
        (json.dumps(_config(exec={"command": "x"})), r"requires `command` and `apiVersion`"),
        (json.dumps(_config(**{"client-key-data": "a"})), r"client-key-data of 'dev-u' is not base64"),
    ],
)
def test_a_wrong_kubeconfig_says_what_is_wrong(content: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "c"
    file.write_text(content)

    with pytest.raises(ConfigError, match=message):
        load_access(_environment(file))


def test_a_missing_certificate_file_is_one_line(tmp_path: Path) -> None:
    config = _config(**{"client-certificate": "gone.pem"})
    access = load_access(_environment(_write(tmp_path / "c", config)))

    with pytest.raises(ClusterUnreachable, match=r"Cannot read the client-certificate '.*gone.pem'"):
        access.user.certificate.read()


def test_secrets_are_not_in_the_representation(tmp_path: Path) -> None:
    config = _config(token="t0ken", password="passw0rd", **{"client-key-data": base64.b64encode(b"k3y").decode()})

    shown = repr(load_access(_environment(_write(tmp_path / "c", config))))

    assert not any(secret in shown for secret in ("t0ken", "passw0rd", "k3y"))


@pytest.mark.parametrize(
    ("server", "fault"),
    [
        ("http://127.0.0.1:", "has a colon after the host, but no port"),
        ("https://api.example:0", "has a colon after the host, but no port"),
        ("https://api.example:https", "cannot be read"),
        ("https://api.example:99999", "cannot be read"),
        ("https://", "has no host"),
        ("ftp://api.example", "does not begin with http:// or https://"),
        ("https://api example", "has spaces"),
    ],
)
def test_an_address_that_is_none_is_refused_at_once(server: str, fault: str, tmp_path: Path) -> None:
    path = _write(tmp_path / "config", _config(server=server))

    with pytest.raises(ConfigError) as caught:
        load_access(_environment(path))

    assert fault in str(caught.value)
    assert str(path) in str(caught.value)
    assert repr(server) in str(caught.value)


@pytest.mark.parametrize("server", ["https://[::1]:6443", "https://api.example/k8s/clusters/c-1", "http://127.0.0.1:1"])
def test_an_address_with_a_path_or_in_brackets_is_one(server: str, tmp_path: Path) -> None:
    assert load_access(_environment(_write(tmp_path / "config", _config(server=server)))).cluster.server == server


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"[" * 200_000 + b"]" * 200_000, "more than 100 nested levels"),
        (b"users: " + b"{a: " * 200_000 + b"}" * 200_000, "more than 100 nested levels"),
        (b"a: &a [*a]", "too many values"),
        (b"a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
         + b"".join(b"a%d: &a%d [%s]\n" % (n, n, b", ".join([b"*a%d" % (n - 1)] * 10)) for n in range(1, 9)),
         "too many values"),
        (b"\xff\xfe\x00", "not UTF-8"),
        (b"a: [1\n", ", line 2: the file is not valid YAML"),
        (b"- a\n", "expected a mapping, found list"),
    ],
    ids=["lists", "mappings", "circle", "aliases", "bytes", "broken", "list"],
)  # fmt: skip
def test_a_hostile_kubeconfig_is_one_line_with_its_file(tmp_path: Path, content: bytes, reason: str) -> None:
    file = tmp_path / "config"
    file.write_bytes(content)
    with pytest.raises(ConfigError, match=reason) as caught:
        load_access(_environment(file))
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_of_a_key_that_occurs_twice_the_last_counts_as_in_kubectl(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(json.dumps(_config()).replace('"current-context"', '"current-context": "other", "current-context"'))
    assert load_access(_environment(file)).context == "dev"
