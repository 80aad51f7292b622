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
from django.urls import reverse
from playwright.sync_api import expect

from kbpo.submissions.tally import count
from tests.web import component_samples as samples

ROOT = Path(__file__).resolve().parents[2]
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
def explored(toy) -> str:
    """The address of the explorer of a run with some judgments; the track is closed."""
    from tests.evaluation.world import World

    world = World(toy, n_documents=2)
    run = world.system("one", lambda one: True)
    run.move("scored", scored_at=run.sampled_at)
    count(run).save()
    world.answer(world.sample(run, 0.4))
    run.track.status = "closed"
    run.track.save()
    return reverse("submission-explore", args=[run.pk])


@pytest.fixture
def tab(browser):
    opened = browser.new_page(viewport={"width": 1400, "height": 900})
    opened.errors = []
    opened.on("pageerror", lambda error: opened.errors.append(str(error)))
    yield opened
    assert opened.errors == []
    opened.close()


def test_a_text_is_copied_as_it_stands_and_chosen_where_that_is_not_allowed(tab, site):
    tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
    tab.goto(f"{site}/copied")
    button, text = tab.locator(".copied button"), "@misc{one,\n  title = {A & B}\n}"
    button.click()
    expect(button).to_have_text("Copied")
    assert tab.evaluate("navigator.clipboard.readText()") == text
    expect(button).to_have_text("Copy")
    tab.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    button.click()
    expect(button).to_have_text("Selected: press Ctrl+C")
    assert tab.evaluate("getSelection().toString()").strip() == text
    tab.wait_for_timeout(1700)
    expect(button).to_have_text("Selected: press Ctrl+C")
    button.blur()
    expect(button).to_have_text("Copy")


def test_a_mac_is_told_its_own_key(browser, site):
    tab = browser.new_page()
    tab.add_init_script(
        "Object.defineProperty(navigator, 'platform', { get: () => 'MacIntel' });"
        "Object.defineProperty(navigator, 'clipboard', { value: undefined });"
    )
    tab.goto(f"{site}/copied")
    tab.locator(".copied button").click()
    expect(tab.locator(".copied button")).to_have_text("Selected: press ⌘+C")
    expect(tab.locator("kbd")).to_have_text("⌘ Enter")
    tab.close()


@pytest.mark.walk
def test_keys_press_what_they_are_written_on_but_never_while_somebody_types(tab, site):
    tab.goto(f"{site}/keys")
    tab.keyboard.press("f")
    assert tab.title() == "f"
    tab.focus("#field")
    tab.keyboard.type("f1")
    assert tab.title() == "f" and tab.input_value("#field") == "f1"


def test_a_sequence_of_keys_follows_a_link(tab, site):
    stop_clock(tab)  # whoever waits too long after the first key begins anew
    tab.goto(f"{site}/keys")
    tab.keyboard.press("g")
    tab.keyboard.press("l")
    tab.wait_for_url("**#there")


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


def test_two_addresses_of_the_file_are_still_one_registry(tab, site):
    tab.goto(f"{site}/keys")
    hints = tab.evaluate("""async () => {
        const other = await import("/static/js/keys.js?hashed");
        other.register("z", "undo", () => { document.title += "z"; });
        return document.querySelector("[data-key-hints]").textContent;
    }""")
    tab.keyboard.press("z")
    tab.keyboard.press("f")
    assert "flag" in hints and "undo" in hints and tab.title() == "zf"


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


def test_what_was_unfolded_and_chosen_in_a_live_part_stays_so(tab, site):
    stop_clock(tab)
    tab.goto(f"{site}/fold")
    tab.click("summary")
    tab.check("[value=narrow]")
    tab.evaluate("document.activeElement.blur()")
    tab.clock.run_for(2000)
    expect(tab.locator("b")).to_have_text("2")
    assert tab.locator("details").get_attribute("open") is not None
    assert tab.is_checked("[value=narrow]") and not tab.is_checked("[value=wide]")


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


def test_a_live_part_that_cannot_be_reached_says_since_when_and_offers_a_reload(tab, site):
    Handler.broken = True
    tab.goto(f"{site}/live")
    for _ in range(3):
        with tab.expect_response("**/part"):
            tab.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(tab.locator("[data-live-status]")).to_have_text(
        re.compile(r"^Not updated since \d\d:\d\d UTC\. Reload the page$")
    )
    assert tab.inner_text("b") == "1"


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


def test_on_a_phone_the_explorer_begins_above_its_list_which_shows_what_is_chosen(tab, site):
    rows = "".join(
        f"<li{' class=chosen' if at == 30 else ''}><p>Claim {at}</p></li>" for at in range(60)
    )
    Handler.pages["/explorer"] = (
        "<!doctype html><html><body><div style='height: 1200px'>The claim</div>"
        "<div class='x-list'><ol style='height: 300px; overflow-y: auto; margin: 0'>"
        f"{rows}</ol></div><script type='module' src='/static/js/explore.js'></script>"
        "</body></html>"
    )
    tab.goto(f"{site}/explorer")
    tab.wait_for_function("document.querySelector('ol').scrollTop > 0")
    assert tab.evaluate("scrollY") == 0
    inside = (
        "one => { const list = one.parentElement.getBoundingClientRect(),"
        " at = one.getBoundingClientRect();"
    )
    assert tab.eval_on_selector(
        ".chosen", f"{inside} return at.top >= list.top && at.bottom <= list.bottom; }}"
    )


def test_a_line_of_the_file_is_shown_in_the_page_and_hidden_again(tab, site):
    Handler.pages["/lined"] = (
        "<!doctype html><html><body><a href='/requirements.txt' data-line>line 7</a>"
        "<pre class='x-line' hidden></pre>"
        "<script type='module' src='/static/js/explore.js'></script></body></html>"
    )
    tab.goto(f"{site}/lined")
    tab.click("a")
    expect(tab.locator("pre")).to_contain_text("Django")
    assert tab.url.endswith("/lined")
    tab.click("a")
    expect(tab.locator("pre")).to_be_hidden()


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


@pytest.mark.django_db(transaction=True)
def test_the_next_claim_is_where_the_keyboard_goes_on(tab, live_server, explored):
    tab.goto(live_server.url + explored)
    assert tab.evaluate("document.activeElement.tagName") == "BODY", "nothing is taken at first"
    skips = []
    for _ in range(2):
        tab.keyboard.press("Tab")
        skips.append(tab.evaluate("document.activeElement.textContent"))
    assert skips == ["Skip to the content", "Skip to the claim"]
    for key in ("Enter", "j", "k"):
        before = tab.title()
        tab.keyboard.press(key)
        if key != "Enter":
            tab.wait_for_function("before => document.title !== before", arg=before)
        expect(tab.locator("#one")).to_be_focused()
        assert tab.title().startswith(tab.get_attribute("#one", "aria-label"))
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.getElementById('one').contains(document.activeElement)")


def test_what_an_address_points_at_is_unfolded(tab, site):
    Handler.pages["/folds"] = (
        "<!doctype html><html><body><a href='#inner'>Inner</a>"
        "<section id='slices'><details id='one'><summary>Slices</summary>"
        "<details id='two'><summary>More</summary><p id='inner'>Inner</p></details></details>"
        "</section><script type='module' src='/static/js/fold.js'></script></body></html>"
    )
    tab.goto(f"{site}/folds")
    expect(tab.locator("details[open]")).to_have_count(0)
    tab.goto(f"{site}/folds#slices")
    expect(tab.locator("#one")).to_have_attribute("open", "")
    expect(tab.locator("#inner")).to_be_hidden()
    tab.click("a")
    expect(tab.locator("#inner")).to_be_visible()


def test_the_search_of_the_head_stands_where_that_of_the_search_page_does(tab, site):
    sheets = "".join(
        f"<link rel='stylesheet' href='/static/css/{name}.css'>"
        for name in ("tokens", "base", "components")
    )
    places = []
    for own in ("", "q"):
        context = {"own": own, "url": "/search/", "about": {}}
        head = render_to_string("components/search.html", context)
        Handler.pages["/head"] = (
            f"<!doctype html><html><head>{sheets}</head><body><header class='top'>"
            f"<div class='page'><div class='top-end'>{head}<b>Keys</b></div></div></header>"
        )
        tab.goto(f"{site}/head")
        left = "one => one.getBoundingClientRect().left"
        places.append([tab.eval_on_selector(one, left) for one in (".top-search kbd", "b")])
    assert places[0] == pytest.approx(places[1], abs=1)
