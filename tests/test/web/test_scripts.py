"""The small modules in a real browser: keys, parts that update, the slider. Pages are made up, the
scripts are not.
"""

import re
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread

import pytest
from browsing import IN_CHROMIUM, stop_clock
from django.template.loader import render_to_string
from playwright.sync_api import expect

from tests.test.web import component_samples as samples

ROOT = Path(__file__).resolve().parents[3]
pytestmark = IN_CHROMIUM

KEYS = """<html><body><script type="module" src="/static/js/keys.js"></script>
<div data-key-hints></div><input id="field">
<button data-key="f" data-key-verb="flag" onclick="document.title += 'f'">Flag</button>
<a href="#there" data-key="g l" data-key-verb="leaderboard" data-key-quiet>Leaderboard</a>
<fieldset data-key-scope><input
  type="radio" name="a" id="a1" data-key="1" data-key-verb="choose"></fieldset>
<fieldset data-key-scope data-at-hand><input
  type="radio" name="b" id="b1" data-key="1" data-key-verb="pick"></fieldset>
<button data-key="Enter" data-key-verb="submit"
  onclick="document.title += '!'">Submit</button></body></html>"""

ROWS = """<!doctype html><html><body><script type="module" src="/static/js/rows.js"></script>
<ul data-rows><li><a href="#patterns">Patterns</a></li>
<li><a href="#neural">Neural</a></li><li><a href="#twin">Twin</a></li></ul>
</body></html>"""

COPIED = """<!doctype html><html><body><script type="module" src="/static/js/copy.js"></script>
<div class="copied"><pre tabindex="0">@misc{one,
  title = {A &amp; B}
}</pre><button type="button" hidden>Copy</button></div><kbd>Ctrl Enter</kbd></body></html>"""

# The document is never left: a frame takes the answer, so that what the button says can be read.
BUSY = """<!doctype html><html><body><script type="module" src="/static/js/busy.js"></script>
<iframe name="away"></iframe>
<form action="/slow" target="away"><button data-busy="Reading the file">Go</button></form>
</body></html>"""

LIVE = """<html><body><script type="module" src="/static/js/live.js"></script>
<i id="state">begun</i><section data-live="/part" data-live-every="2"><p
  data-live-status>now</p><b>1</b></section>
</body></html>"""
DONE = (
    "<section data-live-done><template data-live-also='state'>done</template><b>final</b></section>"
)


FOLDED = """<details id="more"><summary>More</summary><input
  type="radio" name="width" value="wide" checked>
<input type="radio" name="width" value="narrow"></details>"""
FOLD = f"""<html><body><script type="module" src="/static/js/live.js"></script>
<section data-live="/folded" data-live-every="2">{FOLDED}<b>1</b></section></body></html>"""


FIELD = "<input id='why'><i data-live-status></i>"
TYPING = f"""<html><body><script type="module" src="/static/js/live.js"></script>
<section data-live="/typing" data-live-every="2">{FIELD}<b>1</b></section></body></html>"""


class Handler(SimpleHTTPRequestHandler):
    """Serves static files, the pages above, and an answer that counts how often it was asked."""

    pages: dict[str, str] = {}
    asked = 0
    sent = 0
    broken = False
    typed = Event()

    def do_GET(self) -> None:
        if self.path == "/part":
            type(self).asked += 1
            if self.broken:
                return self.send_error(500)
            opening = "<section data-live='/part' data-live-every=2>"
            part = f"{opening}<i data-live-status></i><b>new {self.asked}</b></section>"
            return self._send(part if self.asked < 2 else DONE)
        if self.path == "/folded":
            return self._send(f"<section data-live-done>{FOLDED}<b>2</b></section>")
        if self.path == "/typing":
            self.typed.wait(30)
            return self._send(
                f"<section data-live='/typing' data-live-every=2>{FIELD}<b>2</b></section>"
            )
        if self.path.startswith("/slow"):
            type(self).sent += 1
        if self.path in self.pages:
            return self._send(self.pages[self.path])
        return super().do_GET()

    def _send(self, html: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(html.encode())

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(ROOT)))
    Thread(target=server.serve_forever, daemon=True).start()
    Handler.pages = {
        "/keys": KEYS,
        "/live": LIVE,
        "/fold": FOLD,
        "/typing-page": TYPING,
        "/rows": ROWS,
        "/copied": COPIED,
        "/busy": BUSY,
        "/slow?": "",
    }
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.fixture
def tab(browser):
    opened = browser.new_page(viewport={"width": 1400, "height": 900})
    opened.errors = []
    opened.on("pageerror", lambda error: opened.errors.append(str(error)))
    yield opened
    assert opened.errors == []
    opened.close()


@pytest.mark.walk
def test_keys_press_what_they_are_written_on_but_never_while_somebody_types(tab, site):
    tab.goto(f"{site}/keys")
    tab.keyboard.press("f")
    assert tab.title() == "f"
    tab.focus("#field")
    tab.keyboard.type("f1")
    assert tab.title() == "f" and tab.input_value("#field") == "f1"


def test_a_digit_belongs_to_the_step_at_hand_or_with_the_focus(tab, site):
    tab.goto(f"{site}/keys")
    tab.keyboard.press("1")
    assert tab.is_checked("#b1") and not tab.is_checked("#a1")
    tab.focus("#a1")
    tab.keyboard.press("1")
    assert tab.is_checked("#a1")


def test_enter_submits_from_anywhere_once(tab, site):
    tab.goto(f"{site}/keys")
    tab.focus("#b1")
    tab.keyboard.press("Enter")
    assert tab.title() == "!"
    tab.focus("text=Submit")
    tab.keyboard.press("Enter")
    assert tab.title() == "!!"


def test_keys_that_are_pressed_while_the_next_page_loads_are_not_lost(tab, site):
    for number in range(1, 6):
        Handler.pages[f"/turn/{number}"] = (
            '<!doctype html><html><body><script type="module" src="/static/js/keys.js"></script>'
            f'<a href="/turn/{number + 1}" rel="next" data-key="j" data-key-verb="next">Next</a>'
            f"<h1>{number}</h1></body></html>"
        )
    tab.goto(f"{site}/turn/1")
    tab.evaluate(
        "for (let n = 0; n < 3; n++) document.body.dispatchEvent("
        "new KeyboardEvent('keydown', { key: 'j', bubbles: true, cancelable: true }))"
    )
    expect(tab.locator("h1")).to_have_text("4")
    tab.wait_for_timeout(200)
    expect(tab.locator("h1")).to_have_text("4")


def test_the_hints_and_the_sheet_come_from_the_same_registry(tab, site):
    tab.goto(f"{site}/keys")
    hints = tab.inner_text("[data-key-hints]")
    assert "flag" in hints and "leaderboard" not in hints
    tab.keyboard.press("?")
    sheet = tab.inner_text("dialog")
    assert "flag" in sheet and "leaderboard" in sheet and "submit" in sheet
    tab.keyboard.press("Escape")
    expect(tab.locator("dialog[open]")).to_have_count(0)


@pytest.mark.walk
def test_a_live_part_is_replaced_and_stops_when_it_is_final(tab, site):
    Handler.asked, Handler.broken = 0, False
    stop_clock(tab)
    tab.goto(f"{site}/live")
    tab.clock.run_for(2000)
    expect(tab.locator("b")).to_have_text("new 1")
    expect(tab.locator("[data-live-status]")).to_have_text(re.compile(r"^Updated \d+ s ago$"))
    assert tab.inner_text("#state") == "begun"
    tab.clock.run_for(2000)
    expect(tab.locator("b")).to_have_text("final")
    assert tab.inner_text("#state") == "done", "what stands outside is told too"
    tab.clock.run_for(60_000)
    tab.wait_for_timeout(300)  # a request would arrive
    assert Handler.asked == 2


def test_whoever_begins_to_type_while_the_answer_is_on_its_way_loses_nothing(tab, site):
    Handler.typed.clear()
    stop_clock(tab)
    tab.goto(f"{site}/typing-page")
    with tab.expect_response("**/typing") as answer:
        with tab.expect_request("**/typing"):
            tab.clock.run_for(2000)
        tab.focus("#why")
        tab.keyboard.type("late")
        Handler.typed.set()
    answer.value.finished()
    tab.wait_for_timeout(300)  # it would be put in
    assert tab.input_value("#why") == "late" and tab.inner_text("b") == "1"
    tab.evaluate("document.activeElement.blur()")
    tab.clock.run_for(2000)
    expect(tab.locator("b")).to_have_text("2")


def test_j_and_k_move_through_the_rows_and_enter_opens_one(tab, site):
    tab.goto(f"{site}/rows")
    for key in ("j", "j", "j", "k"):
        tab.keyboard.press(key)
    assert tab.locator(".selected").inner_text() == "Neural"
    tab.keyboard.press("Enter")
    tab.wait_for_url("**#neural")


@pytest.mark.walk
def test_a_form_on_its_way_says_so_and_is_sent_once(tab, site):
    Handler.sent = 0
    tab.goto(f"{site}/busy")
    with tab.expect_response("**/slow?"):
        tab.click("button")
    tab.click("button", force=True)
    expect(tab.locator("button")).to_have_text("Reading the file")
    tab.wait_for_timeout(300)  # a second request would arrive
    assert Handler.sent == 1


def test_the_slider_says_what_it_would_cost_and_chooses_the_row(tab, site, settings):
    from django.template import Context, Template

    source = "{% load kbpo %}{% precision_slider rows 0 %}<button data-slider-order>Order</button>"
    slider = Template(source).render(Context({"rows": samples.context()["slider_rows"]}))
    script = '<script type="module" src="/static/js/slider.js"></script>'
    Handler.pages["/slider"] = (
        f"<!doctype html><html><body>{script}<form>{slider}</form></body></html>"
    )
    tab.goto(f"{site}/slider")
    tab.focus("input[type=range]")
    tab.keyboard.press("ArrowRight")
    assert tab.is_checked("input[value='0.025']")
    said = tab.inner_text("output").replace("\u00a0", " ")
    assert said == "±2.5 % takes at most 512 more judgments and $76.80, about 5 h."
    assert tab.inner_text("[data-slider-order]") == "Order up to 512 judgments, at most $76.80"


@pytest.mark.walk
def test_a_browser_checks_the_word_that_arms_a_button(tab, site):
    field = render_to_string("components/word.html", {"word": "news-2026_é.b"})
    Handler.pages["/armed"] = f'<!doctype html><html><meta charset="utf-8"><body>{field}</body>'
    told = []
    tab.on("console", lambda line: told.append(line.text))
    tab.goto(f"{site}/armed")
    for typed, is_right in {
        "news-2026_é.b": True,
        "NEWS-2026_É.B ": True,
        "news-2026_éxb": False,
        "news2026_é.b": False,
    }.items():
        tab.fill("#word", typed)
        assert tab.eval_on_selector("#word", "field => field.checkValidity()") is is_right, typed
    assert not [line for line in told if "attern" in line]
