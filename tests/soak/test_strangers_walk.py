"""A stranger's first run, in a browser and a shell: from the first page, by clicks alone, to the
track, by a request for an account, download, baseline, a check offline and the price, to a score,
three errors, a comparison and a citation; on a phone by finger. What it takes is printed: seconds,
clicks, fields.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from browsing import IN_CHROMIUM, note_faults
from django.contrib.auth.hashers import MD5PasswordHasher
from playwright.sync_api import Browser, Locator, Page, expect
from processes import Service, wait_for
from travel import PASSWORD, Travel, make_travel

from kbpo.accounts.models import User

pytestmark = IN_CHROMIUM
PATIENCE = 60_000
DESK: Any = {"viewport": {"width": 1400, "height": 900}}
PHONE: Any = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
FINGER = 44
MOST_CLICKS, MOST_SECONDS = 40, 600


@dataclass
class Stranger:
    """Somebody at a browser, whose clicks, fields and seconds are counted, step by step."""

    page: Page
    has_touch: bool = False
    clicks: int = 0
    fields: int = 0
    steps: list[tuple[str, float, int, int]] = field(default_factory=list)
    too_small: set[str] = field(default_factory=set)
    too_wide: set[str] = field(default_factory=set)

    def click(self, what: Locator) -> None:
        """By mouse, or with a finger, which needs a place as large as it is."""
        if self.has_touch:
            self._look(what)
            what.tap()
        else:
            what.click()
        self.clicks += 1

    def write(self, **texts: str) -> None:
        """Fills fields, by their names."""
        for name, text in texts.items():
            written = self.page.locator(f"[name={name}]")
            if self.has_touch:
                self._look(written)
            written.fill(text)
            self.fields += 1

    def check(self, name: str) -> None:
        """Ticks a box by its name: on its label, where there is a finger."""
        self.click(self.page.locator(f"label:has([name={name}])"))
        expect(self.page.locator(f"[name={name}]")).to_be_checked()

    def menu(self, name: str) -> None:
        """Follows a link of the site's menu, which a phone has behind a button."""
        link = self.page.locator("#nav").get_by_role("link", name=name, exact=True)
        if self.has_touch:
            self.click(self.page.get_by_role("button", name="Menu"))
        self.click(link)

    def _look(self, what: Locator) -> None:
        """Notes a target that is smaller than a finger, and a page that scrolls sideways."""
        what.scroll_into_view_if_needed()
        box, where = what.bounding_box(), urlsplit(self.page.url).path
        assert box is not None
        if min(box["width"], box["height"]) < FINGER:
            size = f"{box['width']:.0f} × {box['height']:.0f}"
            self.too_small.add(f"{where}: {what.evaluate('e => e.outerHTML')[:90]} is {size}")
        if self.page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            self.too_wide.add(where)

    def press(self, key: str) -> None:
        self.page.keyboard.press(key)
        self.clicks += 1

    def download(self, name: str, folder: Path) -> Path:
        with self.page.expect_download() as download:
            self.click(self.page.get_by_role("link", name=name, exact=True))
        path = folder / download.value.suggested_filename
        download.value.save_as(path)
        return path

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """What is done inside is one step of the walk."""
        before = self.clicks, self.fields
        start = time.monotonic()
        yield
        seconds = time.monotonic() - start
        self.steps.append((name, seconds, self.clicks - before[0], self.fields - before[1]))

    def told(self) -> str:
        """The steps as a table, and their sums."""
        sums = ("in all", *(sum(column) for column in list(zip(*self.steps, strict=True))[1:]))
        lines = [f"{'step':<28}{'seconds':>9}{'clicks':>8}{'fields':>8}"]
        for name, seconds, clicks, fields in [*self.steps, sums]:
            lines.append(f"{name:<28}{seconds:>9.1f}{clicks:>8}{fields:>8}")
        return "\n".join(lines)


@pytest.mark.parametrize(("name", "screen"), [("Nina", DESK), ("Mina", PHONE)])
def test_a_stranger_comes_to_a_first_score_in_minutes(
    service: Service, tmp_path: Path, browser: Browser, name: str, screen: Any
) -> None:
    travel = make_travel(service, tmp_path / "files", f"{name} a stranger", seed=5, is_shared=True)
    with service.speaking():
        password = MD5PasswordHasher().encode(PASSWORD, "seasalt")
        User.objects.create(username=f"{name}s-chief", password=password, is_staff=True)
    with travel.judging():
        run = next(iter(travel.tokens))
        travel.travel(run)  # somebody to be compared with
    faults: list[list[str]] = []
    stranger = Stranger(_page(browser, faults, screen), "has_touch" in screen)
    admin = _page(browser, faults, DESK)
    _log_in(admin, service, f"{name}s-chief")
    desk, folder = tmp_path / "desk", tmp_path
    desk.mkdir()
    start = time.monotonic()
    page = stranger.page
    page.goto(service.url + "/")  # the only address that is typed, but the one of the mail
    with stranger.step("finds the track"):
        _to_the_track(stranger, travel)
    with stranger.step("asks for an account"):
        _ask(stranger, name)
    with stranger.step("is let in"):
        link = _let_in(admin, service)
        page.goto(link)
        secret = "a-long-new-secret-9"
        stranger.write(username=name, password1=secret, password2=secret)
        stranger.check("terms")
        stranger.click(page.get_by_role("button", name="Create my account"))
        page.wait_for_load_state()
    with stranger.step("downloads, runs the baseline"):
        _to_the_track(stranger, travel)
        file = _baseline(stranger, travel, desk)
    with stranger.step("checks it offline"):
        _validate(page, file, folder)
    with stranger.step("uploads, sees the price"):
        stranger.click(page.get_by_role("link", name="Submit a run"))
        number = _submit(stranger, file)
        travel.submissions[number] = run
    with stranger.step("waits for the first score"), travel.judging():
        wait_for(
            lambda: page.reload() and page.get_by_text("Scored", exact=False).count(),
            "a score",
            every=1.0,
        )
        wait_for(lambda: _status(service, number) == "scored", "the board")
    seconds_to_score = time.monotonic() - start
    with stranger.step("reads why three are wrong"):
        page.reload()
        read = _three_errors(stranger)
    assert len(set(read)) == 3
    with stranger.step("compares"):
        _compare(stranger, travel)
    with stranger.step("cites the board"):
        stranger.click(page.locator(".crumbs a").first)
        frame = _cite(stranger)
    with stranger.step("shows it elsewhere"):
        _show(stranger, folder, number, frame)
    print(f"\n{stranger.told()}\nfrom the first page to the first score: {seconds_to_score:.0f} s")
    assert stranger.clicks <= MOST_CLICKS and seconds_to_score < MOST_SECONDS
    assert not any(faults)
    assert not stranger.too_wide and not stranger.too_small, "\n".join(
        ["wide:", *stranger.too_wide, "small:", *sorted(stranger.too_small)]
    )


def _page(browser: Browser, faults: list[list[str]], screen: Any) -> Page:
    page = browser.new_context(**screen, accept_downloads=True).new_page()
    page.set_default_timeout(PATIENCE)
    faults.append(note_faults(page))
    return page


def _log_in(page: Page, service: Service, name: str) -> None:
    page.goto(f"{service.url}/login/")
    page.locator("[name=username]").fill(name)
    page.locator("[name=password]").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    page.wait_for_load_state()


def _ask(stranger: Stranger, name: str) -> None:
    page = stranger.page
    stranger.click(page.get_by_role("link", name="Ask for an account").first)
    stranger.write(
        name=f"{name} Harbor",
        email=f"{name}@example.org",
        affiliation="Harbor University",
        team=f"Harbor Walk {name}",
        system="A graph model.",
    )
    stranger.click(page.get_by_role("button", name="Ask", exact=True))
    expect(page.get_by_role("heading", name="Request received")).to_be_visible()


def _to_the_track(stranger: Stranger, travel: Travel) -> None:
    """From any page to that of the track, by the menu and the list of tracks."""
    page = stranger.page
    stranger.menu("Tracks")
    stranger.click(page.locator(f"tbody th a[href='/tracks/{travel.track}/about/']"))
    page.wait_for_url(f"**/tracks/{travel.track}/about/")


def _let_in(admin: Page, service: Service) -> str:
    """The link that the admin's one click makes, which a mail carries."""
    admin.goto(f"{service.url}/desk/people/")
    admin.get_by_role("button", name="Accept").click()
    admin.wait_for_load_state()
    link = admin.locator("code.token", has_text="/join/").first.inner_text()
    assert link.startswith("http"), link
    return str(link)


def _baseline(stranger: Stranger, travel: Travel, folder: Path) -> Path:
    """The file that the page's own command makes of what was downloaded and unpacked."""
    page = stranger.page
    folder.mkdir(parents=True, exist_ok=True)
    for link in page.locator(".downloads a[download]").all():
        with page.expect_download() as download:
            stranger.click(link)
        download.value.save_as(folder / download.value.suggested_filename)
    command = page.locator("code", has_text="python baseline.py").first.inner_text()
    words, _, result = command.partition(" > ")
    done = subprocess.run(
        [sys.executable, *words.split()[1:]], cwd=folder, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    file = folder / result.strip()
    file.write_bytes(done.stdout)
    return file


def _validate(page: Page, file: Path, home: Path) -> None:
    """With the client as the page has it installed, from the service's own file, and by the
    command of the page, beside what was unpacked: offline.
    """
    texts = page.locator(".steps-to-take code").all_inner_texts()
    [install] = [text for text in texts if text.startswith("pip install ")]
    installed = home / "site"
    where = ["--no-deps", "--target", str(installed), install.split()[-1]]  # what it needs is here
    pip = [sys.executable, "-m", "pip", "install", "--quiet", *where]
    done = subprocess.run(pip, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    [words] = [text.split()[1:] for text in texts if text.startswith("kbpo validate ")]
    assert words == ["validate", file.name, "--data", "."]
    done = subprocess.run(
        [sys.executable, "-c", "from kbpo_client.commands import main; main()", *words],
        cwd=file.parent,
        env=os.environ | {"PYTHONPATH": str(installed), "XDG_CONFIG_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    assert ", 0 errors," in done.stdout


def _submit(stranger: Stranger, file: Path) -> int:
    page = stranger.page
    with page.expect_file_chooser() as chooser:
        stranger.click(page.locator("#file"))
    chooser.value.set_files(file)
    page.wait_for_url("**/submit/*/")
    stranger.click(page.get_by_role("button", name="Continue to description"))
    stranger.write(name="Baseline")
    stranger.click(page.get_by_role("button", name="Continue to the price"))
    stranger.click(page.get_by_role("button", name="Confirm, at most"))
    page.wait_for_url("**/submissions/*/")
    return int(page.url.rstrip("/").rsplit("/", 1)[1])


def _status(service: Service, number: int) -> Any:
    rows = service.fetch("SELECT status FROM submissions_submission WHERE id = %s", number)
    return rows[0][0]


def _three_errors(stranger: Stranger) -> list[str]:
    """The claims of three wrong predictions, read one after the other: with the keyboard, or by
    finger from the list.
    """
    page = stranger.page
    stranger.menu("Explore")
    page.wait_for_load_state()
    if stranger.has_touch:
        filters = page.locator(".x-filters")
        if not filters.locator("a[href*='verdict=wrong']").first.is_visible():
            stranger.click(filters.locator("summary", has_text="Filters"))
        stranger.click(filters.locator("a[href*='verdict=wrong']").first)
    else:
        stranger.press("w")
    page.wait_for_url("**verdict=wrong**")
    read = []
    for _ in range(3):
        page.wait_for_load_state()
        article = page.locator("#one")
        expect(article.locator(".x-verdict")).to_contain_text("wrong", ignore_case=True)
        read.append(article.inner_text())
        if len(read) < 3:
            now = page.url
            if stranger.has_touch:
                stranger.click(page.locator("#one").get_by_role("link", name="Next"))
            else:
                stranger.press("j")
            page.wait_for_url(lambda url, now=now: url != now)
    return read


def _cite(stranger: Stranger) -> str:
    """The frame that the board offers, once BibTeX and permalink are taken."""
    page = stranger.page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    cite = page.locator("details", has_text="Cite").first
    stranger.click(cite.locator("summary").first)
    copied = []
    for what in cite.locator(".copied").all():
        stranger.click(what.get_by_role("button", name="Copy"))
        expect(what.get_by_role("button", name="Copied")).to_be_visible()
        copied.append(str(page.evaluate("navigator.clipboard.readText()")))
    bibtex, frame = copied
    assert bibtex.startswith("@misc{") and frame.startswith("<iframe ")
    [permalink] = re.findall(r"url +=\s+\{(.*)\}", bibtex)
    stranger.click(cite.get_by_role("link", name=permalink))
    page.wait_for_url(permalink)
    expect(page.locator("main")).to_contain_text("Baseline")
    return frame


def _show(stranger: Stranger, folder: Path, number: int, frame: str) -> None:
    """A page of somebody else shows the board in its frame."""
    page = stranger.page
    stranger.click(page.locator(f"a[href^='/submissions/{number}/']").first)
    other = folder / "elsewhere"
    other.mkdir()
    shown = f"<!doctype html><title>Mine</title>{frame}"
    (other / "index.html").write_text(shown)
    handler = partial(SimpleHTTPRequestHandler, directory=str(other))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        elsewhere = page.context.new_page()
        elsewhere.goto(f"http://127.0.0.1:{server.server_port}/")
        board = elsewhere.frame_locator("iframe")
        expect(board.locator("body")).to_contain_text(re.compile(r"Harbor Walk \w+ Baseline"))
        elsewhere.close()
        server.shutdown()


def _compare(stranger: Stranger, travel: Travel) -> None:
    page = stranger.page
    stranger.menu("Compare")
    page.wait_for_load_state()
    stranger.click(page.get_by_role("button", name="Compare them"))
    main = page.locator("main")  # the track is open: no differences yet
    expect(main).to_contain_text("Differences are shown once the track is closed.")
