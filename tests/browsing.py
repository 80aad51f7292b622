"""A browser for the tests that drive one: Debian's Chromium, started once a process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from door import DOOR
from playwright.sync_api import (
    Browser,
    BrowserContext,
    Page,
    Playwright,
    Response,
    expect,
    sync_playwright,
)

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
IN_CHROMIUM = [
    pytest.mark.browser,
    pytest.mark.skipif(
        not CHROMIUM.exists(), reason=f"There is no {CHROMIUM}: the browser tests need Chromium."
    ),
]
"""The marks of a file of browser tests"""
PATIENCE = 30_000
"""Milliseconds that a busy machine may take for anything."""
expect.set_options(timeout=PATIENCE)  # five seconds otherwise


@pytest.fixture(scope="session")
def playwright() -> Iterator[Playwright]:
    """Playwright, once a process. It runs a loop in this thread, where Django would refuse to touch
    its database.
    """
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as started:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        yield started


@pytest.fixture(scope="session")
def chromium(playwright: Playwright) -> Iterator[Browser]:
    """Chromium, once a process."""
    started = playwright.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
    yield started
    started.close()


@pytest.fixture
def browser(chromium: Browser) -> Iterator[Browser]:
    """Chromium for one test. Its pages are closed then: they would go on saving and asking during
    the next.
    """
    DOOR.forget()
    yield chromium
    close_all(*chromium.contexts)


def close_all(*contexts: BrowserContext) -> None:
    """Closes pages. What they asked for last is through before the tables are emptied, or waits for
    the next test.
    """
    DOOR.shut()
    for context in contexts:
        context.close()
    DOOR.wait_until_empty()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    DOOR.open()


def open_page(browser: Browser, live_server: Any, **options: Any) -> Page:
    """The question at hand of an annotator called ada; `faults` of the page holds what goes wrong
    in its scripts.
    """
    from kbpo.accounts.models import User

    context = browser.new_context(**{"viewport": {"width": 1400, "height": 900}, **options})
    client = Client()
    client.force_login(User.objects.get_or_create(username="ada", is_annotator=True)[0])
    log_in(context, live_server.url, client)
    page = context.new_page()
    page.faults = note_faults(page)  # type: ignore[attr-defined]
    page.goto(live_server.url + "/annotate/next/")
    return page


def log_in(context: BrowserContext, url: str, client: Client) -> None:
    """Nothing; the browser is logged in on the site as a test client is."""
    from django.conf import settings

    name = settings.SESSION_COOKIE_NAME
    context.add_cookies([{"name": name, "value": client.cookies[name].value, "url": url}])


def stop_clock(page: Page) -> None:
    """Timers of the page's scripts go off from now on only when a test lets time pass:
    `page.clock.run_for(ms)`.
    """
    page.clock.install(time=1000)
    page.clock.pause_at(2000)


def draft_with(*words: str) -> Callable[[Response], bool]:
    """Whether an answer is the one to a draft that has these words in it: for
    `page.expect_response`.
    """
    return lambda answer: (
        answer.url.endswith("/draft/")
        and all(word in (answer.request.post_data or "") for word in words)
    )


def note_faults(page: Page) -> list[str]:
    """What goes wrong in a page's scripts, from now on: uncaught errors and errors on its
    console.
    """
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda line: faults.append(line.text) if line.type == "error" else None)
    return faults
