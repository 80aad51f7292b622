"""axe-core finds no serious violation on the pages of annotators while they mark and judge a
document.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.resources import files
from typing import Any, Literal

import pytest
from browsing import IN_CHROMIUM
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, Page

from annotation.hits import publish
from annotation.labels import settle
from annotation.models import Question
from annotation.questions import read_documents
from tests.conftest import Toy
from tests.test.annotation.annotation_world import learn
from tests.test.annotation.documents_world import answer_to, order

pytestmark = [
    *IN_CHROMIUM,
    pytest.mark.django_db(transaction=True),
]
Scheme = Literal["light", "dark"]
AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
RUN = """async (rules) => {
  const options = { resultTypes: ["violations"] };
  if (rules.length) options.runOnly = rules;
  const found = await axe.run(document, options);
  return found.violations.filter((one) => ["serious", "critical"].includes(one.impact))
    .map((one) => `${one.id}: ${one.help} (${
      one.nodes.map((node) => node.target.join(" ")).slice(0, 3).join("; ")})`);
}"""
SCREENS: list[tuple[int, Scheme, Scheme]] = [(1400, "light", "dark"), (390, "dark", "light")]
"""Width, the scheme in which axe looks at everything, and the other one, in which it looks at
colours alone."""


@pytest.fixture
def peopled(toy: Toy) -> Toy:
    """Documents in both stages: one that waits for its pairs, others that wait to be marked."""
    from annotation.workers.worker import worker_of_user

    for name in ("Ada", "Bo", "Cy"):
        learn(worker_of_user(toy.users[name]))
    order(toy.track, 3)
    first = Question.objects.order_by("order")[0]
    for name in ("Ada", "Bo", "Cy"):
        client = Client()
        client.force_login(toy.users[name])
        assert (
            client.post(client.get("/annotate/next/")["Location"], answer_to(first)).status_code
            == 302
        )
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
        context.add_cookies(
            [{"name": "sessionid", "value": client.cookies["sessionid"].value, "url": address}]
        )
    return context


SHIFTED = """() => [...document.querySelectorAll("table")].flatMap((table) => {
  const isSeen = (axis) => (axis.closest("thead") ?? table).getBoundingClientRect().width > 2;
  const boxes = (drawn) => drawn.map((one) => one.getBoundingClientRect())
    .filter((box) => box.width);
  const axes = boxes([...table.querySelectorAll("svg.axis")].filter(isSeen));
  const bars = boxes([...table.querySelectorAll("svg[class^='iv iv-']")]);
  const isNear = (a, b) => Math.abs(a.left - b.left) < 2 && Math.abs(a.right - b.right) < 2;
  const isUnder = (bar) => axes.some((axis) => isNear(axis, bar));
  return axes.length && !bars.every(isUnder) ? [table.className || "a table"] : [];
})"""
"""The tables in which some bar does not lie under an axis, from its first to its last tick"""


TORN = """() => [...document.querySelectorAll("table.stack td")].filter((cell) => {
  const isSeen = (one) => one.nodeType === Node.TEXT_NODE ? one.textContent.trim()
    : one.nodeType === Node.ELEMENT_NODE && one.getClientRects().length;
  const isFlex = getComputedStyle(cell).display === "flex";
  return isFlex && [...cell.childNodes].filter(isSeen).length > 1;
}).map((cell) => cell.textContent.replace(/\\s+/g, " ").trim().slice(0, 60))"""
"""The cells of stacked tables whose parts stand beside each other as if each was a cell"""


def looked_at(
    page: Page, address: str, picture: Callable[[Page, int], None] | None = None
) -> Iterator[str]:
    """What is wrong with a page on each screen: what axe finds, sideways scrolling, cells that
    are torn apart, and bars that do not lie under their axis.
    """
    page.evaluate(AXE + "; 0")
    for width, scheme, other in SCREENS:
        page.set_viewport_size({"width": width, "height": 900})
        if picture:
            picture(page, width)
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        if wide > 0:
            yield f"{address} is {wide} px too wide at {width}"
        for cell in page.evaluate(TORN):
            yield f"{address} at {width}: the cell “{cell}” is torn into its parts"
        for table in page.evaluate(SHIFTED):
            yield f"{address} at {width}: bars of {table} do not lie under their axis"
        yield from (f"{address} at {width}, {scheme}: {one}" for one in page.evaluate(RUN, []))
        page.emulate_media(color_scheme=other, reduced_motion="reduce")
        yield from (
            f"{address} at {width}, {other}: {one}"
            for one in page.evaluate(RUN, ["color-contrast"])
        )


def test_colours_are_looked_at_in_both_schemes_at_both_widths(browser: Browser) -> None:
    """A text that nobody can read in one scheme, at one width, is found."""
    page = browser.new_page()
    for width, scheme in ((1400, "light"), (1400, "dark"), (390, "light"), (390, "dark")):
        side = "min-width: 800px" if width == 1400 else "max-width: 799px"
        page.set_content(f"""<html lang="en"><title>T</title><style>
            body {{ background: #fff; color: #000 }}
            @media (prefers-color-scheme: dark) {{ body {{ background: #000; color: #fff }} }}
            @media ({side}) and (prefers-color-scheme: {scheme}) {{
              body {{ background: #777; color: #888 }} }}
            </style><main><h1>Nobody reads this</h1></main></html>""")
        found = list(looked_at(page, "a page"))
        assert len(found) == 1 and found[0].startswith(
            f"a page at {width}, {scheme}: color-contrast"
        ), found
    page.close()


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
