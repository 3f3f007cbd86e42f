"""What is computed for a cluster state is freed with it, so that a server does not keep every cluster that it read."""

from __future__ import annotations

import gc
import weakref

from holmes.triage.connections import connections
from holmes.triage.looks import LookRequest, take_first_look
from holmes.triage.names import names_of
from tests.triage.shop import shop


def test_a_cluster_state_is_freed_after_a_question() -> None:
    scan = shop.__wrapped__()
    take_first_look(LookRequest(question="why is payments failing?"), scan)
    names_of(scan.state)
    connections(scan.state, scan.state.of("Deployment"))
    state = weakref.ref(scan.state)

    del scan
    gc.collect()

    assert state() is None
