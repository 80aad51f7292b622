"""axe-core finds no serious violation on the pages of annotators while they mark and judge a document."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.resources import files
from typing import Any

import pytest
from browsing import IN_CHROMIUM
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, Page

from annotation import publish, read_documents, settle
from annotation.models import Question
from tests.annotation.annotation_world import learn
from tests.annotation.documents_world import answer_to, order
from tests.conftest import Toy

pytestmark = [
    *IN_CHROMIUM,
    pytest.mark.django_db(transaction=True),
]
AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
RUN = """async () => {
  const found = await axe.run(document, { resultTypes: ["violations"] });
  return found.violations.filter((one) => ["serious", "critical"].includes(one.impact))
    .map((one) => `${one.id}: ${one.help} (${one.nodes.map((node) => node.target.join(" ")).slice(0, 3).join("; ")})`);
}"""
SCREENS = [(1400, "light"), (390, "dark")]
"""What axe looks at: both layouts and both schemes. Colours are the same tokens on either, so two runs see them all."""


@pytest.fixture
def peopled(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> Toy:
    """Documents in both stages: one that waits for its pairs, others that wait to be marked."""
    from annotation.worker import worker_of

    monkeypatch.setattr("kbpo.queue._send", lambda step: None)
    for name in ("Ada", "Bo", "Cy"):
        learn(worker_of(toy.users[name]))
    order(toy.track, 3)
    first = Question.objects.order_by("order")[0]
    for name in ("Ada", "Bo", "Cy"):
        client = Client()
        client.force_login(toy.users[name])
        assert client.post(client.get("/annotate/next/")["Location"], answer_to(first)).status_code == 302
    settle.tick()
    read_documents.tick()
    publish.tick()
    return toy


def context_of(browser: Browser, address: str, user: Any) -> BrowserContext:
    """Where axe may run: the site's own rules let no other script in."""
    context = browser.new_context(viewport={"width": 1400, "height": 900}, bypass_csp=True)
    if user is not None:
        client = Client()
        client.force_login(user)
        context.add_cookies([{"name": "sessionid", "value": client.cookies["sessionid"].value, "url": address}])
    return context


def looked_at(page: Page, address: str, picture: Callable[[Page, int], None] | None = None) -> Iterator[str]:
    """What is wrong with a page on each screen: what axe finds, and sideways scrolling."""
    page.evaluate(AXE + "; 0")
    for width, scheme in SCREENS:
        page.set_viewport_size({"width": width, "height": 900})
        if picture:
            picture(page, width)
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
        wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        if wide > 0:
            yield f"{address} is {wide} px too wide at {width}"
        yield from (f"{address} at {width}, {scheme}: {one}" for one in page.evaluate(RUN))


def test_documents_in_hand(browser: Browser, live_server: Any, peopled: Toy) -> None:
    """Each of two people holds two documents: one its pairs, the others their names."""
    found, seen = [], set()
    for name in ("Ada", "Bo"):
        page = context_of(browser, live_server.url, peopled.users[name]).new_page()
        for _ in range(2):
            page.goto(live_server.url + "/annotate/next/")
            page.wait_for_selector("html[data-ready]")
            interface = page.locator("#answer").get_attribute("data-interface")
            seen.add(interface)
            for key in ("ArrowRight", "Shift+ArrowRight", "Enter", "ArrowRight", "p", "1"):
                page.keyboard.press(key)
            found += looked_at(page, f"{interface} of {name}")
            with page.expect_navigation():
                page.evaluate("document.querySelector('[formaction$=\"/return/\"]').click()")
        page.context.close()
    assert "\n".join(found) == ""
    assert seen == {"entities", "relations_exhaustive"}
