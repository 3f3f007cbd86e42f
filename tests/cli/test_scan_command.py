"""`holmes scan` and `holmes rules` as a user meets them: what they print, what they refuse, how they end."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import yaml

from holmes.values.findings_json import report_from_json
from tests.support.command_line import Finished, Home
from tests.support.kubernetes_api import (
    Answer,
    KubernetesApi,
    Request,
    document,
    empty_cluster,
    kubernetes_api,
    listing,
    pod,
    running,
    status,
    waiting,
    write_kubeconfig,
)

PODS = "/api/v1/pods"
READY = {"conditions": [{"type": "Ready", "status": "True"}]}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home.make(tmp_path / "home")


def scan_of(home: Home, folder: Path, prepare: Callable[[KubernetesApi], None], *arguments: str) -> Finished:
    """Scan a cluster that is empty apart from what `prepare` puts there."""
    with kubernetes_api() as api:
        api.on("/version", document({"gitVersion": "v1.34.0"}))
        empty_cluster(api)
        prepare(api)
        return home.run("scan", f"--kubeconfig={write_kubeconfig(folder, api.url)}", *arguments)


def broken_pod(api: KubernetesApi) -> None:
    message = 'Back-off pulling image "registry.shop.example/web:2": not found'
    api.on(PODS, listing([pod("web", containers={"web": waiting("ImagePullBackOff", message)})]))


def test_a_fault_is_shown_with_culprit_cause_evidence_and_next_step(home: Home, tmp_path: Path) -> None:
    done = scan_of(home, tmp_path, broken_pod, "-o", "wide")

    assert done.exit_code == 0
    for words in (
        "1 incident (1 critical) in the whole cluster",
        "CRITICAL",
        "Pod shop/web",
        "ImagePullBackOff",
        "next",
    ):
        assert words in done.stdout


def test_the_table_has_one_whole_line_for_each_incident(home: Home, tmp_path: Path) -> None:
    done = scan_of(home, tmp_path, broken_pod)

    lines = [line for line in done.stdout.splitlines() if line.startswith("CRITICAL")]
    assert len(lines) == 1
    assert "  Pod shop/web  " in lines[0]
    assert lines[0].endswith("does not exist in the registry")


def test_sarif_has_a_result_with_its_rule_and_says_what_is_new(home: Home, tmp_path: Path) -> None:
    healthy = tmp_path / "healthy.json"
    healthy.write_text(scan_of(home, tmp_path, lambda _: None, "-o", "json").stdout)

    done = scan_of(home, tmp_path, broken_pod, "-o", "sarif", f"--baseline={healthy}")

    (run,) = json.loads(done.stdout)["runs"]
    (result,) = run["results"]
    assert (result["level"], result["baselineState"]) == ("error", "new")
    assert result["locations"][0]["logicalLocations"][0]["fullyQualifiedName"] == "Pod shop/web"
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == [result["ruleId"]]


def test_junit_has_a_failure_for_each_incident_and_skips_what_was_not_read(home: Home, tmp_path: Path) -> None:
    def partly_forbidden(api: KubernetesApi) -> None:
        broken_pod(api)
        api.on("/api/v1/secrets", status(403, "Forbidden", "secrets is forbidden"))

    done = scan_of(home, tmp_path, partly_forbidden, "-o", "junit")

    suite = ET.fromstring(done.stdout).find("testsuite")  # noqa: S314  our own output
    assert suite is not None
    failure = suite.find("testcase/failure")
    assert failure is not None
    assert "next: kubectl" in (failure.text or "")
    assert (suite.get("failures"), len(suite.findall("testcase/skipped"))) == ("1", int(suite.get("skipped", "0")))
    assert suite.get("skipped") != "0"


def test_the_json_is_the_documented_contract_and_yaml_says_the_same(home: Home, tmp_path: Path) -> None:
    as_json = scan_of(home, tmp_path, broken_pod, "-o", "json")
    as_yaml = scan_of(home, tmp_path, broken_pod, "-o", "yaml")

    report = report_from_json(as_json.stdout)
    assert report.complete
    assert report.incidents[0].culprit.name == "web"
    assert yaml.safe_load(as_yaml.stdout)["incidents"] == json.loads(as_json.stdout)["incidents"]


def test_markdown_is_for_a_ticket(home: Home, tmp_path: Path) -> None:
    done = scan_of(home, tmp_path, broken_pod, "-o", "markdown")

    assert done.stdout.startswith("# 1 incident (1 critical) in the whole cluster\n")
    assert "## critical: " in done.stdout


def healthy_pod(api: KubernetesApi) -> None:
    api.on(PODS, listing([pod("web", status=READY)]))


def restarted_pod(api: KubernetesApi) -> None:
    """A pod whose only fault is a warning: it was restarted five minutes ago and works again."""
    finished = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 300))
    container = running(restarts=1, last={"exitCode": 1, "reason": "Error", "finishedAt": finished})
    api.on(PODS, listing([pod("web", containers={"web": container}, status=READY)]))


def test_a_healthy_cluster_that_was_read_whole_has_no_reservation(home: Home, tmp_path: Path) -> None:
    done = scan_of(home, tmp_path, healthy_pod, "--fail-on", "info")

    assert done.exit_code == 0
    assert done.stdout.startswith("No incidents found in the whole cluster\n")
    assert "not checked" not in done.stdout
    assert "too young" not in done.stdout


@pytest.mark.parametrize("scope", [(), ("-n", "shop")])
def test_an_empty_scope_has_nothing_to_check_and_is_not_called_free_of_incidents(
    home: Home, tmp_path: Path, scope: tuple[str, ...]
) -> None:
    def only_a_namespace(api: KubernetesApi) -> None:
        for namespace in ("shop", "kube-system", "default"):
            empty_cluster(api, namespace)
        api.on("/api/v1/namespaces", listing([{"metadata": {"name": "shop", "uid": "1"}}]))
        own = [{"metadata": {"name": "kube-root-ca.crt", "namespace": "shop", "uid": "2"}}]
        for path in ("/api/v1/configmaps", "/api/v1/namespaces/shop/configmaps"):
            api.on(path, listing(own))

    place = "in namespace shop" if scope else "in the whole cluster"
    told = f"Nothing to check {place}: 0 objects found"
    outputs = {
        form: scan_of(home, tmp_path, only_a_namespace, *scope, "-o", form).stdout
        for form in ("table", "wide", "markdown", "json", "sarif", "junit")
    }

    assert outputs["table"].startswith(told)
    assert outputs["wide"].startswith(told)
    assert outputs["markdown"].startswith(f"# {told}")
    assert json.loads(outputs["json"])["objects"] == 0
    (run,) = json.loads(outputs["sarif"])["runs"]
    notes = [each["message"]["text"] for each in run["invocations"][0]["toolExecutionNotifications"]]
    assert told in notes
    skipped = ET.fromstring(outputs["junit"]).findall("testsuite/testcase/skipped")  # noqa: S314  our own output
    assert told in [each.get("message") for each in skipped]


def test_objects_within_the_grace_are_counted_and_named(home: Home, tmp_path: Path) -> None:
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())

    def young(api: KubernetesApi) -> None:
        starting = pod("cart", containers={"cart": waiting("ContainerCreating")})
        for each in (starting, ready := pod("web", status=READY)):
            each["metadata"]["creationTimestamp"] = now
        api.on(PODS, listing([starting, ready, pod("old", status=READY)]))
        claim = {"metadata": {"name": "data", "namespace": "shop", "uid": "3", "creationTimestamp": now}}
        api.on("/api/v1/persistentvolumeclaims", listing([{**claim, "status": {"phase": "Pending"}}]))

    told = (
        "2 objects are younger than 600 s and may still be starting: Pod shop/cart, PersistentVolumeClaim shop/data; "
        "scan again later, or use --grace 0"
    )
    for form in ("table", "wide", "markdown"):
        text = " ".join(scan_of(home, tmp_path, young, "--grace", "600", "-o", form).stdout.split())
        assert f"too young{': ' if form == 'markdown' else ' '}{told}" in text
    report = report_from_json(scan_of(home, tmp_path, young, "--grace", "600", "-o", "json").stdout)
    assert report.too_young is not None
    assert (report.too_young.total, report.too_young.grace_seconds) == (2, 600)
    assert [str(each) for each in report.too_young.objects] == ["Pod shop/cart", "PersistentVolumeClaim shop/data"]
    assert report.objects == 4
    assert "too young" not in scan_of(home, tmp_path, young, "--grace", "0").stdout


def test_an_incident_that_severity_hides_still_fails_a_pipeline(home: Home, tmp_path: Path) -> None:
    shown = scan_of(home, tmp_path, restarted_pod, "--fail-on", "warning")
    hidden = scan_of(home, tmp_path, restarted_pod, "--severity", "critical", "--fail-on", "warning", "-o", "json")
    higher = scan_of(home, tmp_path, restarted_pod, "--severity", "critical", "--fail-on", "critical")

    assert shown.stdout.startswith("1 incident (1 warning)")
    assert (shown.exit_code, hidden.exit_code, higher.exit_code) == (1, 1, 0)
    assert json.loads(hidden.stdout)["incidents"] == []
    assert "--severity critical hides 1 incident of --fail-on" in hidden.stderr
    assert "hides" not in shown.stderr


def test_what_severity_hides_is_not_called_resolved(home: Home, tmp_path: Path) -> None:
    before = tmp_path / "before.json"
    before.write_text(scan_of(home, tmp_path, restarted_pod, "-o", "json").stdout)

    done = scan_of(home, tmp_path, restarted_pod, "--severity", "critical", f"--baseline={before}", "--fail-on", "info")

    assert done.exit_code == 0
    assert "Resolved since" not in done.stdout


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (status(403, "Forbidden", 'pods is forbidden: User "eve" cannot list resource "pods"'), "Forbidden"),
        (status(404, "NotFound", "the server could not find the requested resource"), "does not have this kind"),
        (status(500, "InternalError", "etcd leader changed"), "etcd leader changed"),
        (status(429, "TooManyRequests", "slow down", {"Retry-After": "1"}), "is overloaded and rejected 3 requests"),
        (
            Answer(body=b'{"items": [' + b" " * 1000, cut_after=500),
            "the connection ended before the response was complete",
        ),
        (Answer(body=b"{}", delay_seconds=30), "took longer than 2 s"),
    ],
    ids=["forbidden", "group missing", "error", "too many requests", "breaks off", "slow"],
)
def test_what_cannot_be_read_is_told_and_never_called_healthy(
    home: Home, tmp_path: Path, answer: Answer, why: str
) -> None:
    seconds = {429: "2.5"}.get(answer.status, "2" if answer.delay_seconds else "20")

    def answered(api: KubernetesApi) -> None:
        for path in (PODS, "/api/v1/namespaces/shop/pods"):
            api.on(path, answer)

    done = scan_of(home, tmp_path, answered, "--timeout", seconds)

    assert done.exit_code == 0
    nothing = "Nothing was checked in the whole cluster: 0 objects could be read"
    assert done.stdout.startswith(f"{nothing}; some checks could not run\n")
    assert "not checked Pod" in done.stdout
    assert why in " ".join(done.stdout.split())
    assert "healthy" not in done.stdout


def test_a_cluster_that_breaks_off_after_the_probe_exits_with_3(home: Home, tmp_path: Path) -> None:
    def refuse_everything(api: KubernetesApi) -> None:
        for path in api.paths():
            if path != "/version":
                api.on(path, status(503, "ServiceUnavailable", "apiserver is shutting down", {"Retry-After": "0"}))

    done = scan_of(home, tmp_path, refuse_everything)

    assert done.exit_code == 3
    assert "apiserver is shutting down" in done.stderr
    assert "--demo" in done.stderr
    assert done.stdout == ""


def test_fail_on_ends_with_1_only_for_what_the_baseline_does_not_have(home: Home, tmp_path: Path) -> None:
    before = tmp_path / "before.json"
    before.write_text(scan_of(home, tmp_path, broken_pod, "-o", "json").stdout)
    healthy = tmp_path / "healthy.json"
    healthy.write_text(scan_of(home, tmp_path, lambda _: None, "-o", "json").stdout)

    known = scan_of(home, tmp_path, broken_pod, "--fail-on", "critical", f"--baseline={before}")
    new = scan_of(home, tmp_path, broken_pod, "--fail-on", "critical", f"--baseline={healthy}")
    gone = scan_of(home, tmp_path, lambda _: None, "--fail-on", "critical", f"--baseline={before}")
    plain = scan_of(home, tmp_path, broken_pod, "--fail-on", "warning")

    assert (known.exit_code, new.exit_code, gone.exit_code, plain.exit_code) == (0, 1, 0, 1)
    assert "NEW" in new.stdout
    assert "NEW" not in known.stdout
    assert "Resolved since the baseline" in gone.stdout


def test_what_was_not_looked_at_this_time_is_not_called_gone(home: Home, tmp_path: Path) -> None:
    before = tmp_path / "before.json"
    before.write_text(scan_of(home, tmp_path, broken_pod, "-o", "json").stdout)
    forbidden = status(403, "Forbidden", 'pods is forbidden: User "eve" cannot list resource "pods"')

    unread = scan_of(home, tmp_path, lambda api: api.on(PODS, forbidden), f"--baseline={before}")
    narrowed = scan_of(home, tmp_path, lambda _: None, f"--baseline={before}", "--rule", "N01")

    for done in (unread, narrowed):
        assert "Not scanned this time" in done.stdout
        assert "Resolved since" not in done.stdout


def test_fail_on_promises_nothing_when_the_pods_could_not_be_read(home: Home, tmp_path: Path) -> None:
    forbidden = status(403, "Forbidden", 'pods is forbidden: User "eve" cannot list resource "pods"')

    done = scan_of(home, tmp_path, lambda api: api.on(PODS, forbidden), "--fail-on", "critical")

    assert done.exit_code == 3
    assert "pods could not be read" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "incidents"),
    [
        (("--kind", "pod"), 1),
        (("--kind", "svc"), 0),
        (("-l", "app=web"), 1),
        (("-l", "app=cart"), 0),
        (("--rule", "p04"), 1),
        (("--rule", "P01"), 0),
    ],
)
def test_the_options_choose_among_the_incidents(
    home: Home, tmp_path: Path, arguments: tuple[str, ...], incidents: int
) -> None:
    def labelled(api: KubernetesApi) -> None:
        containers = {"web": waiting("ImagePullBackOff", "manifest unknown")}
        api.on(PODS, listing([pod("web", labels={"app": "web"}, containers=containers)]))

    done = scan_of(home, tmp_path, labelled, "-o", "json", *arguments)

    assert len(report_from_json(done.stdout).incidents) == incidents


def test_a_choice_that_nothing_matches_is_not_taken_for_a_healthy_cluster(home: Home, tmp_path: Path) -> None:
    def broken(api: KubernetesApi) -> None:
        api.on(PODS, listing([pod("web", containers={"web": waiting("ImagePullBackOff", "manifest unknown")})]))

    done = scan_of(home, tmp_path, broken, "--kind", "node")

    assert done.stdout.startswith("No incidents found that match --kind")


def test_a_misspelled_kind_does_not_let_a_pipeline_pass(home: Home, tmp_path: Path) -> None:
    done = scan_of(home, tmp_path, empty_cluster, "--kind", "pdo", "--fail-on", "critical")

    assert (done.exit_code, done.stdout) == (2, "")
    assert "--kind 'pdo': the cluster has no such kind" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--rule", "P99"), "unknown rule 'P99'"),
        (("-A", "-n", "shop"), "-A and -n are mutually exclusive"),
        (("-l", "app"), "write labels as key=value"),
        (("--demo", "--snapshot", "x"), "are mutually exclusive"),
        (("--snapshot", "nowhere"), "nowhere"),
        (("--baseline", "nowhere.json"), "nowhere.json"),
        (("--timeout", "nan"), "is not a valid number of seconds"),
        (("--grace", "inf"), "is not a valid number of seconds"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(home: Home, arguments: tuple[str, ...], says: str) -> None:
    done = home.run("scan", *arguments)

    assert done.exit_code == 2
    assert says in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert done.stdout == ""


def test_a_namespace_that_does_not_exist_is_a_mistake_and_not_healthy(home: Home, tmp_path: Path) -> None:
    def with_namespaces(api: KubernetesApi) -> None:
        for namespace in ("shp", "kube-system"):
            empty_cluster(api, namespace)
        api.on("/api/v1/namespaces", listing([{"metadata": {"name": "shop", "uid": "1"}}]))

    done = scan_of(home, tmp_path, with_namespaces, "-n", "shp")

    assert done.exit_code == 2
    assert "namespace 'shp' does not exist; the closest existing name is 'shop'" in done.stderr


def test_a_report_of_something_else_is_no_baseline(home: Home, tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text('{"kind": "List"}')

    done = home.run("scan", f"--baseline={other}")

    assert done.exit_code == 2
    assert "not a diagnosis" in done.stderr


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "not valid JSON"),
        (b"[" * 100_000, "not valid JSON"),
        (b'{"version": 1, "incidents": [], "rules_run": ' + b"1" * 6_000 + b"}", "not valid JSON"),
        (b"[]", "not a diagnosis"),
        (bytes(range(256)), "is not text"),
        (b'{"version": 2, "incidents": []}', "has version 2; expected version 1"),
        (b'{"version": 1, "incidents": {"a": 1}}', "is damaged"),
        (b'{"version": 1, "incidents": [null]}', "is damaged"),
        (b'{"version": 1, "incidents": [{"id": "P04-1", "findings": []}]}', "is damaged"),
        (b'{"version": 1, "incidents": [{"findings": [{"rule_id": "P04"}]}]}', "is damaged"),
    ],
    ids=["empty", "deep", "long number", "list", "binary", "version", "type", "null", "no findings", "no id"],
)
def test_a_damaged_baseline_is_one_line_and_exit_code_2(home: Home, tmp_path: Path, content: bytes, says: str) -> None:
    (tmp_path / "before.json").write_bytes(content)

    done = scan_of(home, tmp_path, broken_pod, "--baseline", str(tmp_path / "before.json"))

    assert (done.exit_code, done.stdout) == (2, "")
    assert says in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_thousands_of_kinds_that_were_not_read_do_not_bury_the_report(home: Home, tmp_path: Path) -> None:
    def with_many_kinds(api: KubernetesApi) -> None:
        versions = [{"name": "v1", "served": True, "storage": True}]
        names = [{"kind": f"Promotion{number}", "plural": f"promotions{number}"} for number in range(300)]
        items = [
            {
                "metadata": {"name": each["plural"], "uid": each["plural"]},
                "spec": {"group": "shop.example", "names": each, "versions": versions},
            }
            for each in names
        ]
        api.on("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", listing(items))

    done = scan_of(home, tmp_path, with_many_kinds)

    assert len(done.stdout.splitlines()) < 150
    assert "and 276 more kinds" in " ".join(done.stdout.split())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_with_one_line_and_its_code(tmp_path: Path, number: signal.Signals) -> None:
    home = Home.make(tmp_path / "home")
    with kubernetes_api() as api:
        reached = threading.Event()

        def slow(_: Request) -> Answer:
            reached.set()
            return Answer(delay_seconds=30)

        api.on("/version", document({"gitVersion": "v1.34.0"}))
        empty_cluster(api)
        api.on(PODS, slow)
        process = home.start("scan", f"--kubeconfig={write_kubeconfig(tmp_path, api.url)}")
        assert reached.wait(60)
        process.send_signal(number)
        out, err = process.communicate(timeout=20)

    assert (process.returncode, out, err) == (128 + number, "", "holmes: interrupted\n")


def test_without_a_cluster_it_exits_with_3_and_names_the_demo(home: Home) -> None:
    done = home.run("scan")

    assert done.exit_code == 3
    assert "--demo" in done.stderr


def test_scan_does_not_import_the_models_library(home: Home, tmp_path: Path) -> None:
    with kubernetes_api() as api:
        api.on("/version", document({"gitVersion": "v1.34.0"}))
        empty_cluster(api)
        kubeconfig = write_kubeconfig(tmp_path, api.url)
        program = (
            "import sys; from holmes.cli.main import cli; "
            f"cli.main(['scan', '--kubeconfig={kubeconfig}'], standalone_mode=False); "
            "print('heavy:', sorted({'litellm', 'tiktoken', 'jinja2', 'prompt_toolkit'} & set(sys.modules)))"
        )
        done = subprocess.run(
            [sys.executable, "-c", program],
            env=home.environment(),
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )

    assert "Nothing to check" in done.stdout
    assert "heavy: []" in done.stdout


def test_secrets_in_evidence_are_masked(home: Home, tmp_path: Path) -> None:
    def leaking(api: KubernetesApi) -> None:
        message = "failed: https://shop:hunter2hunter2@registry.shop.example/v2: 401 Unauthorized"
        api.on(PODS, listing([pod("web", containers={"web": waiting("ErrImagePull", message)})]))

    done = scan_of(home, tmp_path, leaking, "-o", "json")

    assert "hunter2hunter2" not in done.stdout
    assert "REDACTED" in done.stdout


def test_rules_are_listed_and_explained(home: Home) -> None:
    listed, explained, unknown = (
        home.run("rules", "list"),
        home.run("rules", "explain", "p05"),
        home.run("rules", "explain", "X1"),
    )

    assert len(listed.stdout.splitlines()) > 90
    assert explained.stdout.startswith("P05  ")
    assert "Reads:" in explained.stdout
    assert unknown.exit_code == 2
    assert "holmes rules list" in unknown.stderr
