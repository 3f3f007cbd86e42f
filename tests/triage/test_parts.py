"""Citations, commands, lines of logs and events, tables of objects."""

from __future__ import annotations

import json
from dataclasses import replace

import jq
import pytest

from holmes.triage.conversation import Outcome, Source, source_of
from holmes.triage.details import decisive_lines, telling_events
from holmes.triage.markdown import fix_commands, look_commands, resource_path
from holmes.triage.objects import nearest_objects, parse_objects
from holmes.triage.question import Named
from holmes.triage.tables import name_filter
from holmes.values.findings import Change, Evidence
from holmes.values.findings_json import report_to_json
from tests.triage.reports import BAD_IMAGE, CART, HIGH_LIMIT, MISSING_SETTINGS, OUT_OF_MEMORY, SHOP, ref
from tests.triage.shop import EVENTS, LOG


def outcome(text: str, **changed: object) -> Outcome:
    return replace(Outcome(tool="t", status="success", text=text, result_id="0123456789ab"), **changed)  # type: ignore[arg-type]


def lines_of(marker: str, text: str) -> list[str]:
    first, _, last = marker.strip(" []").partition(":")[2].partition("-")
    return text.split("\n")[int(first) - 1 : int(last or first)]


def test_every_piece_of_evidence_is_cited_at_its_own_lines() -> None:
    text = report_to_json(SHOP)
    source = source_of(outcome(text))
    for incident in SHOP.incidents:
        assert json.dumps(incident.cause) in lines_of(source.of_value("cause", incident.cause), text)[0]
        for evidence in incident.evidence:
            cited = lines_of(source.of_evidence(evidence), text)
            assert len(cited) == 3
            assert json.dumps(str(evidence.object)) in cited[0]
            assert json.dumps(evidence.value) in cited[2]


def test_what_is_not_in_the_result_is_not_cited() -> None:
    source = source_of(outcome(report_to_json(SHOP)))
    assert source.of_evidence(Evidence(object=CART, path="spec", value="made up")) == ""
    assert source.of_value("cause", "made up") == ""
    assert Source().of_value("cause", "anything") == ""
    assert Source().marker(3) == ""
    assert source_of(outcome("pointer", partial=True, stored_id="abcdef012345")).of_value("cause", "x") == (
        " [[abcdef012345:1]]"
    )


def test_json_on_one_line_is_cited_by_the_lines_that_the_store_counts() -> None:
    text = json.dumps(json.loads(report_to_json(SHOP)))
    source = source_of(outcome(text))
    assert len(source.lines) > 50
    assert source.of_value("cause", OUT_OF_MEMORY.cause) != ""


MISSING_FILE = replace(
    OUT_OF_MEMORY, findings=tuple(replace(each, evidence=()) for each in OUT_OF_MEMORY.findings), changed_before=()
)


@pytest.mark.parametrize(
    ("incident", "commands"),
    [
        (MISSING_SETTINGS, ("# create ConfigMap shop/checkout-settings, or correct the reference to it",)),
        (OUT_OF_MEMORY, ("kubectl set resources deployment/cart -n shop --containers=app --limits=memory=<limit>",)),
        (
            BAD_IMAGE,
            (
                "kubectl rollout undo deployment/search -n shop",
                "kubectl set image deployment/search -n shop app=<existing image>",
            ),
        ),
        (HIGH_LIMIT, ()),
        (replace(MISSING_FILE, title="Application crashes: its configuration is wrong or missing"), ()),
    ],
    ids=["missing", "memory", "image", "node", "file"],
)
def test_the_likely_fix_fits_the_field_that_is_wrong(incident: object, commands: tuple[str, ...]) -> None:
    assert fix_commands(incident) == commands  # type: ignore[arg-type]


def test_what_was_only_created_cannot_be_undone() -> None:
    created = replace(BAD_IMAGE, changed_before=(Change(object=BAD_IMAGE.culprit, what="was created", at="x"),))
    assert not any("undo" in command for command in fix_commands(created))


def test_names_are_quoted_for_the_shell() -> None:
    odd = replace(HIGH_LIMIT, culprit=ref("Deployment", "a;reboot", "b c"), findings=())
    commands, _ = look_commands(odd)
    assert commands == ("kubectl describe 'deployment/a;reboot' -n 'b c'",)


def test_a_look_that_is_no_command_is_not_put_among_the_commands() -> None:
    finding = replace(OUT_OF_MEMORY.findings[0], next_check="Ask the owner\nof the quota")
    commands, looks = look_commands(replace(OUT_OF_MEMORY, findings=(finding,)))
    assert looks == ("Ask the owner of the quota",)
    assert commands == ("kubectl describe deployment/cart -n shop",)


def test_custom_kinds_are_named_with_their_group() -> None:
    custom = replace(ref("Certificate", "web"), group="cert-manager.io")
    assert resource_path(custom) == "certificate.cert-manager.io/web"


def test_a_line_that_a_rule_has_quoted_is_preferred_to_other_complaints() -> None:
    found = decisive_lines(outcome(LOG), ["loading the price list"])
    assert [each.text[-22:] for each in found] == ["loading the price list"]
    assert found[0].marker == " [[0123456789ab:5]]"
    assert [each.text[-40:] for each in decisive_lines(outcome(LOG), [])] == [
        "R cannot allocate 48 MiB for the price list"[-40:]
    ], "the same message with other numbers is quoted once, the last time"


def test_a_log_that_complains_about_nothing_shows_its_end() -> None:
    calm = "Logs\n=== pod a, container b: running\nshowing 2 of 2 lines\none\ntwo\n"
    assert [each.text for each in decisive_lines(outcome(calm), [])] == ["one", "two"]


def test_only_warnings_are_quoted_from_events() -> None:
    (event,) = telling_events(outcome(EVENTS))
    assert "BackOff" in event.text
    assert event.marker == " [[0123456789ab:3]]"


@pytest.mark.parametrize(
    ("table", "resources", "namespace", "expected"),
    [
        (
            "NAMESPACE   NAME   READY\nshop   deployment.apps/cart   1/1\n\nNAMESPACE   NAME\nshop   service/cart\n",
            ("deployments", "services"),
            "",
            ("Deployment shop/cart", "Service shop/cart"),
        ),
        ("NAME   READY   STATUS\ncart   1/1   Running\n", ("pods",), "shop", ("Pod shop/cart",)),
        ("NAME   STATUS\nworker-1   Ready\n", ("nodes",), "", ("Node worker-1",)),
        ("", ("pods",), "shop", ()),
        ("something else entirely", ("pods", "services"), "shop", ()),
    ],
)
def test_objects_are_read_from_the_tables_of_kubectl(
    table: str, resources: tuple[str, ...], namespace: str, expected: tuple[str, ...]
) -> None:
    assert tuple(map(str, parse_objects(table, resources, namespace))) == expected


def test_the_nearest_names_come_first() -> None:
    existing = [ref("Deployment", name) for name in ("payments", "payments-worker", "cart", "web")]
    assert nearest_objects("paymints", existing)[0].name == "payments"
    assert nearest_objects("zzz", existing) == ()


def test_a_condition_for_names_is_a_program_that_holds_for_them_and_their_pods() -> None:
    program = jq.compile(
        f".[] | select({name_filter((Named(name='cart'), Named(name='web-', prefix=True)))}) | .metadata.name"
    )
    names = ["cart", "cart-5d8f6bb7c9-qwz7x", "carts", "web-0", "search"]
    assert list(program.input_value([{"metadata": {"name": name}} for name in names])) == [
        "cart",
        "cart-5d8f6bb7c9-qwz7x",
        "web-0",
    ]
    assert name_filter(()) == "true"
