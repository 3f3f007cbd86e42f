"""The figures of two processes as one."""

from __future__ import annotations

import pickle

from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from holmes.telemetry.instruments import MergedFigures
from holmes.telemetry.metrics import Metrics


def merged(one: Metrics, other: Metrics) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """As a scrape reads it, by name and labels; what `other` counted has come through a pipe."""
    families = pickle.loads(pickle.dumps(other.families()))  # noqa: S301  our own
    text = generate_latest(MergedFigures(one.families(), families)).decode()
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_counters_and_histograms_add_up_by_their_labels() -> None:
    one, other = Metrics(models=["small", "large"]), Metrics(models=["small", "large"])
    one.call_took(0.3, model="small", outcome="answered")
    other.call_took(0.3, model="small", outcome="answered")
    other.call_took(20, model="large", outcome="answered")
    one.alerts_received(firing=3, resolved=0, duplicates=1)

    samples = merged(one, other)

    name = "holmes_llm_call_duration_seconds"
    small = (("model", "small"), ("outcome", "answered"))
    assert samples[f"{name}_count", small] == 2
    assert samples[f"{name}_sum", small] == 0.6
    assert samples[f"{name}_bucket", (("le", "0.5"), *small)] == 2
    assert samples[f"{name}_bucket", (("le", "0.25"), *small)] == 0
    assert samples[f"{name}_count", (("model", "large"), ("outcome", "answered"))] == 1
    assert samples["holmes_alerts_received_total", (("status", "firing"),)] == 3


def test_what_is_no_amount_is_not_added_up() -> None:
    one, other = Metrics(models=[]), Metrics(models=[])
    own = {sample.name: sample.value for family in one.families() for sample in family.samples}

    samples = merged(one, other)

    assert [value for (name, _), value in samples.items() if name == "holmes_build_info"] == [1.0]
    assert samples["process_start_time_seconds", ()] == own["process_start_time_seconds"]
    assert samples["process_max_fds", ()] == 2 * own["process_max_fds"]
    assert samples["process_resident_memory_bytes", ()] > 1.5 * own["process_resident_memory_bytes"]
