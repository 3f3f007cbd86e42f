"""A rule with a bug costs its own findings, and nothing else."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator

import pytest

from holmes.diagnosis.engine import all_rules
from holmes.diagnosis.rule import Fault, Row
from holmes.diagnosis.scan import RuleRun, ScanRequest, result_of, run_rules
from holmes.kubernetes.cluster_state import ClusterState
from holmes.values.findings import Evidence, FixStep, ObjectRef, ScanCost
from holmes.values.fixes import fix_line
from tests.diagnosis.row_cases import state_of

COST = ScanCost(list_calls=1, requests=1, logs_read=0, seconds=0)
POD = {
    "kind": "Pod",
    "metadata": {"name": "web"},
    "spec": {"nodeName": "node-1", "containers": [{"name": "app", "image": "registry.shop.example/web:2"}]},
    "status": {
        "phase": "Pending",
        "containerStatuses": [{"name": "app", "state": {"waiting": {"reason": "ImagePullBackOff"}}}],
    },
}


@Row(id="X01", title="Broken rule", severity="info", kinds=("Pod",), reads=("spec",), explanation="Has a bug.")
def broken(state: ClusterState) -> Iterator[Fault]:
    for pod in state.of("Pod"):
        yield Fault(subject=pod.ref, cause=f"{pod.name} is odd", evidence=(), next_check="")
        raise KeyError("spec")


def test_all_other_rules_still_run_and_the_answer_names_the_rule(failed_rules: list[str]) -> None:
    state = state_of({"objects": [POD]})

    run = run_rules((broken, *all_rules()), state)
    report = result_of(state, run, ScanRequest(), cost=COST).report

    assert [each.culprit.name for each in report.incidents] == ["web"]
    assert "X01" not in {each.rule_id for each in run.findings}
    (failure,) = report.not_checked
    assert (failure.what, failure.rules) == ("rule X01 (Broken rule)", ("X01",))
    assert failure.why == "the rule failed: KeyError: 'spec'"
    assert not report.complete
    (logged,) = failed_rules
    assert "Traceback" in logged
    assert "rule X01 failed" in logged
    failed_rules.clear()


def test_a_rule_that_failed_stays_failed_after_logs_were_read(failed_rules: list[str]) -> None:
    state = state_of({"objects": [POD]})
    first = run_rules((broken,), state)

    again = run_rules((broken,), state.with_logs({}), first)

    assert again == RuleRun(by_rule={"X01": ()}, wanted_logs=(), log_readers=frozenset(), failed=first.failed)
    failed_rules.clear()


ODD_NAMES = ("web; rm -rf ~", "$(reboot)", "`reboot`", "a b", "it's", "x\nreboot", "a|b", ">out", "*", "web&")


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_suggested_command_is_safe_to_paste_whatever_an_object_is_called(name: str) -> None:
    harmless = state_of({"objects": [POD]})
    hostile = state_of({"objects": [{**POD, "metadata": {"name": name, "namespace": name}}]})

    plain, odd = (run_rules(all_rules(), state).findings for state in (harmless, hostile))

    assert any(each.next_check for each in plain)
    assert len(odd) == len(plain)
    for expected, found in zip(plain, odd, strict=True):
        words = ["WEB" if word == name else word for word in shell_words(found.next_check)]
        wanted = ["WEB" if word in ("web", "shop") else word for word in shell_words(expected.next_check)]
        assert words in (wanted, [])


def shell_words(command: str) -> list[str]:
    """The arguments that a real shell passes on. It runs nothing but `printf`."""
    script = f"kubectl() {{ printf '%s\\0' kubectl \"$@\"; }}; {command}"
    done = subprocess.run(
        [shutil.which("bash") or "bash", "--restricted", "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": ""},
        timeout=20,
    )
    return done.stdout.split("\0")[:-1]


def test_the_steps_of_a_fix_are_safe_to_paste_too() -> None:
    ref = ObjectRef(kind="Service", namespace="$(reboot)", name="a; reboot")
    step = FixStep(kind="patch", object=ref, action='"`reboot`"', path="/spec/type")

    words = shell_words(fix_line(step))

    assert words[:5] == ["kubectl", "-n", "$(reboot)", "patch", "service/a; reboot"]
    assert "`reboot`" in words[-1]


def test_a_name_of_the_evidence_is_quoted_like_every_other() -> None:
    odd = ObjectRef(kind="ConfigMap", namespace="shop", name="$(reboot)")

    @Row(id="X02", title="Odd", severity="info", kinds=("Pod",), reads=("spec",), explanation="Names an object.")
    def names_it(state: ClusterState) -> Iterator[Fault]:
        for pod in state.of("Pod"):
            proof = Evidence(object=odd, path="data", value="x")
            check = f"kubectl -n shop get configmap {odd.name} -o yaml"
            yield Fault(subject=pod.ref, cause="odd", evidence=(proof,), next_check=check)

    (finding,) = run_rules((names_it,), state_of({"objects": [POD]})).findings

    assert finding.next_check == "kubectl -n shop get configmap '$(reboot)' -o yaml"
