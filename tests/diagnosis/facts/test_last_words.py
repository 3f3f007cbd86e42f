"""Log lines that rules quote: shared between pods of one owner, with every request counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holmes.diagnosis.facts.crashes import crashes_of
from holmes.diagnosis.facts.logs import last_words
from tests.diagnosis.row_cases import state_of

if TYPE_CHECKING:
    from holmes.kubernetes.cluster_state import ClusterState


def _crashing(logs: dict[str, str], owners: tuple[str, str] = ("web-5c9", "web-5c9")) -> ClusterState:
    ended = {"exitCode": 1, "reason": "Error", "startedAt": {"ago": 40}, "finishedAt": {"ago": 30}}
    status = {
        "name": "app",
        "restartCount": 4,
        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": ended},
    }
    pods = [
        {
            "kind": "Pod",
            "metadata": {"name": f"web-5c9-{letter}", "owner": f"ReplicaSet/{owner}"},
            "spec": {"containers": [{"name": "app"}]},
            "status": {"phase": "Running", "containerStatuses": [status]},
        }
        for letter, owner in zip("ab", owners, strict=True)
    ]
    return state_of({"objects": pods, "logs": logs})


def test_the_log_of_one_pod_speaks_for_its_siblings_of_the_same_owner_only() -> None:
    log = {"shop/web-5c9-b/app/previous": "FATAL: no plan\n"}
    together, apart = _crashing(log), _crashing(log, ("web-5c9", "web-4b8"))
    quotes = [
        words and words.quote for words in (last_words(each.container, together) for each in crashes_of(together))
    ]
    assert quotes == ["FATAL: no plan", "FATAL: no plan"]
    first = crashes_of(apart)[0]
    assert first.pod.name == "web-5c9-a"
    assert last_words(first.container, apart) is None


def test_every_rule_that_asks_for_a_log_is_counted_also_when_the_answer_is_known() -> None:
    state = _crashing({})
    container = crashes_of(state)[0].container
    counts = []
    for _ in range(2):
        last_words(container, state)
        counts.append(state.log_questions)
    assert 0 < counts[0] < counts[1]
