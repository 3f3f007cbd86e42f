"""Answers facts that only few wordings ask for, each in a module of its own. The first that fits answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holmes.triage.backups import asks_backups, backups
from holmes.triage.certificates import asks_certificates, certificates
from holmes.triage.details import scaling_bounds
from holmes.triage.draining import asks_disruption, disruption
from holmes.triage.environment_values import asks_environment, environment
from holmes.triage.node_values import asks_nodes_with, asks_old_kubelets, nodes_with, old_kubelets
from holmes.triage.plain_states import asks_plain_state, plain_state
from holmes.triage.replica_room import asks_replica_room, replica_room
from holmes.triage.service_names import asks_port, asks_service_name, port, service_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from holmes.triage.asked import Asked
    from holmes.triage.question import Question
    from holmes.triage.subjects import Subject
    from holmes.values.first_look import FirstLook


def _asks_target(question: Question, subject: Subject) -> bool:
    """Return whether a question compares the use of a workload with the target of its autoscaler."""
    scaled = any(each.kind == "HorizontalPodAutoscaler" for each in subject.objects)
    return scaled and "target" in question.words and question.asks("usage") and not question.asks("why", "trouble")


_FACTS: Final[tuple[tuple[Callable[[Question, Subject], bool], Callable[[Asked], FirstLook]], ...]] = (
    (asks_plain_state, plain_state),
    (asks_disruption, disruption),
    (asks_replica_room, replica_room),
    (asks_environment, environment),
    (asks_service_name, service_name),
    (asks_port, port),
    (asks_nodes_with, nodes_with),
    (asks_old_kubelets, old_kubelets),
    (_asks_target, scaling_bounds),
    (asks_backups, backups),
    (asks_certificates, certificates),
)


def asks_narrow_fact(question: Question, subject: Subject) -> bool:
    """Return whether a question asks for one of these facts."""
    return any(asks(question, subject) for asks, _ in _FACTS)


def narrow_fact(asked: Asked) -> FirstLook:
    """Return the answer of the first module that reads the question."""
    return next(answer for asks, answer in _FACTS if asks(asked.question, asked.subject))(asked)
