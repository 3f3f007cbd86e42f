"""The page in real Chromium: looks, live steps, evidence, keyboard, phone, both schemes, and without JavaScript."""

from __future__ import annotations

import json
import time
from dataclasses import replace

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect
from sqlalchemy import update

from holmes.app.serving import Service
from holmes.charts import draw_picture
from holmes.charts.picture import HEIGHT_PIXELS, LINE_COLOURS, THRESHOLD_COLOUR, WIDTH_PIXELS
from holmes.investigations.records.schema import INVESTIGATIONS
from holmes.investigations.records.values import InvestigationId
from holmes.values.charts import thinned
from holmes.values.events import AgentEvent, AnswerFinished
from holmes.values.messages import StoredResult, ToolCallId
from holmes.values.stats import RequestStats
from tests.server.page.sample import MODEL, add_events, add_one, add_raw_event, call, counted, result
from tests.server.page.serving import KEY, RunningServer
from tests.server.page.visiting import DESKTOP, PALE_TEXT, PHONE, TOO_WIDE, Scheme, visit
from tests.support.charts import MEMORY
from tests.support.pixels import Pixels


def addresses(server: RunningServer) -> dict[str, str]:
    """The kinds of pages, by a name for pictures."""
    sample = server.sample
    return {
        "incidents": "/?state=all",
        "investigations": "/investigations",
        "incident": f"/incidents/{sample.incidents['crash']}",
        "hostile-incident": f"/incidents/{sample.incidents['hostile']}",
        "answered": f"/investigations/{sample.investigations['answered']}",
        "running": f"/investigations/{sample.investigations['running']}",
        "failed": f"/investigations/{sample.investigations['failed']}",
        "hostile": f"/investigations/{sample.investigations['hostile']}",
        "output": f"/results/{sample.results['pod']}?lines=9-12#L9",
        "hostile-output": f"/results/{sample.results['hostile']}?lines=2-3",
    }


def _open_everything(page: Page) -> None:
    """Open what can be opened, and wait for what is fetched then."""
    page.locator("main details").evaluate_all("all => all.forEach((each) => { each.open = true; })")
    expect(page.locator("details[open] [data-src], [aria-busy]")).to_have_count(0)


@pytest.mark.parametrize(("scheme", "viewport"), [("light", DESKTOP), ("dark", PHONE)], ids=["desktop", "phone"])
def test_pages_fit_the_screen_and_can_be_read(
    browser: Browser, page_server: RunningServer, scheme: Scheme, viewport: ViewportSize
) -> None:
    with visit(browser, page_server, viewport=viewport, scheme=scheme) as page:
        for name, address in addresses(page_server).items():
            page.goto(address)
            _open_everything(page)
            assert page.evaluate(TOO_WIDE) == "", name
            assert page.evaluate(PALE_TEXT) == [], name


def test_steps_and_the_answer_appear_while_the_page_is_open(browser: Browser, page_server: RunningServer) -> None:
    identity = page_server.write(lambda connection: add_one(connection, "a live one", "running", max_cost=1.0))
    with visit(browser, page_server) as page:
        page.goto(f"/investigations/{identity}")
        expect(page.locator("#answer")).to_contain_text("Investigating…")
        started = call(1, "kubectl get events -n payments")
        page_server.write(lambda connection: add_events(connection, identity, [started]))
        step = page.locator("#steps > li")
        expect(step).to_contain_text("kubectl get events")
        expect(step.locator(".word")).to_have_text("running")
        expect(page.locator("#announce")).to_contain_text("kubectl get events")
        ended: list[AgentEvent] = [result(started, "LAST SEEN  TYPE\n2m  Warning"), counted(50_000, 0.5)]
        page_server.write(lambda connection: add_events(connection, identity, ended))
        expect(step.locator("details")).to_be_attached()
        expect(step).to_have_count(1)
        expect(page.locator("#gauges meter").first).to_have_attribute("value", "50000")
        step.locator("summary").click()
        expect(step.locator(".output")).to_contain_text("LAST SEEN")
        _finish(page_server, identity, "The **node** is full.")
        expect(page.locator("#answer .markdown strong")).to_have_text("node")
        expect(page.locator(".state")).to_have_text("answered")
        expect(page.locator("#announce")).to_have_text("The answer is available.")
        expect(page.locator("#cancel")).to_have_count(0)
        expect(step.locator(".output")).to_contain_text("LAST SEEN")  # what was open stays open


def _finish(server: RunningServer, identity: InvestigationId, answer: str) -> None:
    values = {"state": "answered", "answer": answer, "answered_by": MODEL, "finished_at": time.time()}
    finished = AnswerFinished(text=answer, messages=(), stats=RequestStats(), steps=1, model=MODEL)
    server.write(
        lambda connection: connection.execute(
            update(INVESTIGATIONS).where(INVESTIGATIONS.c.id == identity).values(**values)
        )
    )
    server.write(lambda connection: add_events(connection, identity, [finished]))


def test_hostile_events_that_arrive_live_do_nothing(browser: Browser, page_server: RunningServer) -> None:
    identity = page_server.write(lambda connection: add_one(connection, "a hostile one", "running"))
    text = '</li></ol><img src=x onerror="window.__owned = true"><script>window.__owned = true</script>'
    with visit(browser, page_server) as page:
        page.goto(f"/investigations/{identity}")
        data = json.dumps({"id": text, "tool_name": text, "description": text})
        page_server.write(
            lambda connection: add_raw_event(connection, identity, "start_tool_calling", data, time.time())
        )
        expect(page.locator("#steps > li .what")).to_contain_text("<script>window.__owned")
        assert page.locator("main img, main script").count() == 0


def test_a_number_in_the_answer_opens_its_lines_and_the_output_there(
    browser: Browser, page_server: RunningServer
) -> None:
    with visit(browser, page_server) as page:
        page.goto(addresses(page_server)["answered"])
        page.locator("#answer a.cite", has_text="2").click()
        evidence = page.locator("#evidence-2")
        expect(evidence.locator("code")).to_contain_text('"DATABASE_HOST" is not set')
        expect(evidence).to_contain_text("The container says that")
        evidence.get_by_role("link", name="Open the result at line 55").click()
        expect(page).to_have_url(f"{page_server.url}/results/{page_server.sample.results['logs']}?lines=55-55#L55")
        expect(page.locator("tr.cited")).to_have_count(1)
        expect(page.locator("tr.cited")).to_be_in_viewport()


def test_no_hostile_text_becomes_a_link_or_a_script(browser: Browser, page_server: RunningServer) -> None:
    with visit(browser, page_server) as page:
        for name in ("hostile", "hostile-incident", "hostile-output"):
            page.goto(addresses(page_server)[name])
            _open_everything(page)
            links = page.locator("main a").evaluate_all("links => links.map((link) => link.protocol)")
            assert set(links) <= {"http:", "https:"}, name
            assert page.locator("main :is(img, script, style, iframe)").count() == 0, name
            assert page.locator("main *").evaluate_all(
                "all => all.filter((e) => [...e.attributes].some((a) => a.name.startsWith('on'))).length"
            ) == 0  # fmt: skip


def test_the_keyboard_reaches_everything(browser: Browser, page_server: RunningServer) -> None:
    with visit(browser, page_server) as page:
        page.goto("/?state=all")
        page.keyboard.press("Tab")
        expect(page.locator(":focus")).to_have_text("Skip to content")
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        expect(page.locator(":focus")).to_have_attribute("name", "q")
        rows = page.locator("[data-row]")
        rows.first.focus()
        page.keyboard.press("j")
        expect(rows.nth(1)).to_be_focused()
        page.keyboard.press("ArrowUp")
        expect(rows.first).to_be_focused()
        assert page.evaluate("getComputedStyle(document.activeElement.closest('.row')).outlineStyle") == "solid"
        page.keyboard.press("Enter")
        page.wait_for_url("**/incidents/**")
        page.goto(addresses(page_server)["answered"])
        page.locator("#evidence summary").first.focus()
        page.keyboard.press("Enter")
        expect(page.locator("#evidence-1 code").first).to_contain_text("CrashLoopBackOff")


def test_everything_has_a_name_and_a_place(browser: Browser, page_server: RunningServer) -> None:
    with visit(browser, page_server) as page:
        for address in ("/", addresses(page_server)["answered"]):
            page.goto(address)
            for role in ("banner", "main", "navigation"):
                assert page.get_by_role(role).count() >= 1, role
            assert page.locator("h1").count() == 1
            unnamed = page.locator("input:not([type=hidden]), select, button, summary, a, meter").evaluate_all(
                """all => all.filter((e) => !(e.textContent.trim() || e.ariaLabel || e.labels?.length
                  || e.getAttribute('aria-labelledby'))).map((e) => e.outerHTML)"""
            )
            assert unnamed == []
            doubled = page.locator("[id]").evaluate_all(
                "all => all.map((e) => e.id).filter((id, place, ids) => ids.indexOf(id) !== place)"
            )
            assert doubled == []


def test_without_javascript_everything_is_there_and_can_be_opened(browser: Browser, page_server: RunningServer) -> None:
    with visit(browser, page_server, javascript=False) as page:
        page.goto(addresses(page_server)["running"])
        assert "refresh" in page.content()
        expect(page.locator("#steps > li")).to_have_count(2)
        page.goto(addresses(page_server)["answered"])
        expect(page.locator("#answer")).to_contain_text("cannot start because its ConfigMap lost")
        page.locator("#steps summary", has_text="describe pod").click()
        page.locator("#steps details[open]").get_by_role("link", name="Open the result").click()
        expect(page.locator(".lines")).to_contain_text("CrashLoopBackOff")
        page.go_back()
        page.locator("#answer a.cite").first.click()
        expect(page.locator("tr.cited").first).to_be_in_viewport()


def test_cancelling_from_the_page(browser: Browser, page_server: RunningServer) -> None:
    identity = page_server.write(lambda connection: add_one(connection, "one to cancel", "running"))
    with visit(browser, page_server) as page:
        page.goto(f"/investigations/{identity}")
        page.locator("#cancel summary").click()
        page.get_by_role("button", name="Cancel the investigation").click()
        expect(page.locator(".state")).to_have_text("cancelled")


def test_logging_in_and_out(browser: Browser, locked_server: RunningServer) -> None:
    with visit(browser, locked_server) as page:
        page.goto("/investigations?state=failed")
        expect(page.get_by_label("API key")).to_be_focused()
        page.keyboard.type(KEY)
        page.keyboard.press("Enter")
        page.wait_for_url("**/investigations?state=failed")
        (cookie,) = page.context.cookies()
        assert (cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (True, "Strict", "/")
        assert page.evaluate("document.cookie") == ""
        _watch_a_stream(page, locked_server)
        page.get_by_role("button", name="Log out").click()
        page.wait_for_url("**/login")
        assert page.context.cookies() == []
        page.goto("/")
        expect(page.get_by_label("API key")).to_be_visible()


def _watch_a_stream(page: Page, server: RunningServer) -> None:
    """The cookie is good for the stream of events too, which no header can be sent with."""
    with page.expect_response("**/api/investigations/*/events*") as stream:
        page.goto(addresses(server)["running"])
    assert stream.value.status == 200


def test_the_picture_of_a_result_is_beside_it_and_has_a_description(
    browser: Browser, page_server: RunningServer
) -> None:
    started = call(1, "Query metrics of the last 1h: memory", "query_metrics_range")
    stored = page_server.run(_store_picture)
    ended = replace(result(started, "first 2, last 8", stored), chart=thinned(MEMORY))
    identity = page_server.write(lambda connection: add_one(connection, "a chart", "answered", answer="It grows."))
    page_server.write(lambda connection: add_events(connection, identity, [started, ended]))
    with visit(browser, page_server, viewport={"width": 1280, "height": 1_400}) as page:
        page.goto(f"/investigations/{identity}")
        _open_everything(page)
        picture = page.get_by_role("img", name=MEMORY.title)
        expect(picture).to_be_visible()
        # `wait_for_function` would be refused by the page's Content-Security-Policy when it has to wait.
        page.evaluate("Promise.all([...document.images].map((each) => each.decode()))")
        assert picture.evaluate("(each) => [each.naturalWidth, each.naturalHeight]") == [WIDTH_PIXELS, HEIGHT_PIXELS]
        alt = picture.get_attribute("alt") or ""
        assert '{pod="checkout-0"}: first 200,000,000, last 800,000,000, min 200,000,000, max 800,000,000' in alt
        assert page.evaluate(TOO_WIDE) == ""
        seen = Pixels.of(picture.screenshot())
    for colour in (LINE_COLOURS[0], LINE_COLOURS[1], THRESHOLD_COLOUR):
        assert len(seen.places(colour)) > 200, colour
    assert seen.share_of_dark(0, 20) > 0.01


async def _store_picture(service: Service) -> StoredResult:
    assert service.results is not None
    return await service.results.put(
        draw_picture(MEMORY), tool_name="query_metrics_range", call_id=ToolCallId("1"), media_type="image/png"
    )
