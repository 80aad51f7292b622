"""axe-core finds no serious violation on the pages of annotators and admins, nor on the public ones."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import pytest
from browsing import IN_CHROMIUM
from django.test import Client
from django.urls import URLPattern, get_resolver, reverse
from playwright.sync_api import Browser, BrowserContext

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
SCREENS = [(1400, "light"), (1400, "dark"), (390, "light"), (390, "dark")]


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


def context_of(browser: Browser, address: str, user: Any, width: int, scheme: Any) -> BrowserContext:
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, bypass_csp=True)
    if user is not None:
        client = Client()
        client.force_login(user)
        context.add_cookies([{"name": "sessionid", "value": client.cookies["sessionid"].value, "url": address}])
    return context


def violations(context: BrowserContext, address: str, paths: list[str]) -> list[str]:
    """What axe finds on some pages, with the page before it."""
    page, found = context.new_page(), []
    for path in paths:
        response = page.goto(address + path)
        assert response is not None and response.status == 200, (path, response and response.status)
        page.evaluate(AXE + "; 0")
        found += [f"{path} {one}" for one in page.evaluate(RUN)]
    context.close()
    return found


def pages_under(prefix: str, **known: str) -> list[str]:
    """The addresses of all named pages that begin so, as far as their parts are known; no downloads, no parts."""
    found = []
    for pattern in _patterns():
        names = set(pattern.pattern.converters)
        if pattern.name and names <= set(known):
            path = reverse(pattern.name, kwargs={name: known[name] for name in names})
            if path.startswith(prefix) and path.endswith("/") and "/live" not in path:
                found.append(path)
    return sorted(set(found))


def _patterns() -> Iterator[URLPattern]:
    for one in get_resolver().url_patterns:
        inner = getattr(one, "url_patterns", None)
        yield from (two for two in inner if isinstance(two, URLPattern)) if inner is not None else iter([one])


def answers(user: Any, path: str) -> bool:
    """Whether a page shows itself to somebody who just asks for it."""
    client = Client()
    if user is not None:
        client.force_login(user)
    response = client.get(path)
    return response.status_code == 200 and response["Content-Type"].startswith("text/html")


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_admins_pages(browser: Browser, live_server: Any, peopled: Toy, width: int, scheme: str) -> None:
    admin = peopled.users["Admin"]
    paths = [path for path in pages_under("/desk/", slug="toy") if answers(admin, path)]
    assert {"/desk/", "/desk/tracks/toy/", "/desk/tracks/toy/reading/"} <= set(paths)
    paths[paths.index("/desk/tracks/toy/reading/")] += "?n=1&token=0.75&pair=5"
    preview = reverse("annotate_preview", args=[Question.objects.order_by("order")[0].pk])
    context = context_of(browser, live_server.url, admin, width, scheme)
    assert "\n".join(violations(context, live_server.url, [*paths, preview])) == ""


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_annotators_pages(browser: Browser, live_server: Any, peopled: Toy, width: int, scheme: str) -> None:
    """Each of three people holds a document: one its pairs, the others their names."""
    found, seen = [], set()
    for name in ("Ada", "Bo"):
        user = peopled.users[name]
        context = context_of(browser, live_server.url, user, width, scheme)
        page = context.new_page()
        for _ in range(2):
            page.goto(live_server.url + "/annotate/next/")
            page.wait_for_selector("html[data-ready]")
            seen.add(page.locator("#answer").get_attribute("data-interface"))
            for key in ("ArrowRight", "Shift+ArrowRight", "Enter", "ArrowRight", "p", "1"):
                page.keyboard.press(key)
            page.evaluate(AXE + "; 0")
            found += page.evaluate(RUN)
            with page.expect_navigation():
                page.evaluate("document.querySelector('[formaction$=\"/return/\"]').click()")
        paths = [path for path in pages_under("/annotate/") if answers(user, path) and "next" not in path]
        found += violations(context, live_server.url, paths)
    assert "\n".join(found) == ""
    assert seen == {"entities", "relations_exhaustive"}


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_public_pages(browser: Browser, live_server: Any, peopled: Toy, width: int, scheme: str) -> None:
    pages = [path for path in pages_under("/", slug="toy") if not path.startswith(("/desk", "/annotate", "/api"))]
    paths = [path for path in pages if answers(None, path)]
    assert "/" in paths
    context = context_of(browser, live_server.url, None, width, scheme)
    assert "\n".join(violations(context, live_server.url, paths)) == ""
