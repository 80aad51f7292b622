"""How many keys, clicks and taps judging takes somebody who knows the answers.

usage: python benchmarks/keys.py [URL] [FILES] [QUESTIONS]
       (default: http://127.0.0.1:8000, var/demo/files,
       ten questions by keys, ten by mouse, ten by finger)

`make demo` must be up. Chromium logs in as `annotator` (or whom LOGIN names), agrees to the terms
and passes the tutorials. Then the script reads each page, looks up what is true in the files of the
demo, and does the least that says so: questions about two names by keys, by mouse and by finger on
390 points; the names of a document and the pairs of one, as far as such are open. Printed are keys
by kind of question: how many of the two names are asked for, and how many sentences hold. Readers
need some more, for slips and for what they read twice.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import Locator, Page, sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks import tables
from rehearsal import reading
from rehearsal.annotators import right_answers
from rehearsal.browser import Form, _Reader
from rehearsal.newspaper.knows import Knowledge

CHROMIUM = "/usr/bin/chromium"
LOGIN = os.environ.get("LOGIN", "annotator"), "harbour-wire-demo"
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
PATIENCE = 30_000
SELECTED = (
    """() => [...document.querySelectorAll("#text .t.sel")].map((one) => Number(one.dataset.t))"""
)


@dataclass
class Hand:
    """Somebody's keys, mouse or finger on a page, counted."""

    page: Page
    how: str = "keys"
    n: int = 0
    begun: float = field(default_factory=time.monotonic)

    def press(self, *keys: str) -> None:
        """Nothing; each key was pressed, one after the other."""
        for key in keys:
            self.page.keyboard.press(key)
            self.n += 1

    def point(self, place: Locator) -> None:
        """Nothing; it was clicked or tapped."""
        place.tap() if self.how == "taps" else place.click()
        self.n += 1


def form_of(page: Page, name: str = "answer") -> Form:
    """A form as it stands on the page, with what is chosen in it."""
    reader = _Reader()
    reader.feed(page.content())
    return next(form for form in reader.forms if form.id == name)


def true_answer(form: Form, knows: Knowledge) -> dict[str, list[str]]:
    """What is true of a question about two names, as the fields of its form."""
    spans = {side: tuple(map(int, form.data[side].split("-"))) for side in ("a", "b")}
    truth = knows.true_answer(form.data["document"], spans["a"], spans["b"])
    answer = {}
    for side, span in (("a", truth.subject_canonical), ("b", truth.object_canonical)):
        value = f"{span[0]}-{span[1]}"
        if offered := form.options(side):
            answer[side] = [value if value in offered else "other"]
    parts = {f"{name}{direction}" for name, direction in truth.holds}
    holds = [value for value in form.options("holds") if parts.intersection(value.split())]
    return answer | ({"holds": holds} if holds else {"none": ["1"]})


def judge_pair(hand: Hand, right: dict[str, list[str]]) -> str:
    """Answers the question about two names on the page; returns of which kind it was."""
    page = hand.page
    asked = [side for side in ("a", "b") if page.locator(f"input[name={side}]").count()]
    for side in asked:
        pills = page.locator(f"[data-step={side}] .pill")
        values = [one.get_attribute("value") for one in pills.locator("input").all()]
        at = values.index(right[side][0])
        if pills.nth(at).locator("input").is_checked():
            continue
        if hand.how == "keys":
            go_to(hand, side)
            hand.press(str(at + 1))
        else:
            hand.point(pills.nth(at))
    go_to(hand, "holds") if hand.how == "keys" else None
    common = page.locator("[data-step=holds] > .choices input[name=holds]")
    shown = [one.get_attribute("value") for one in common.all()]
    for value in right.get("holds", []):
        rarer = value not in shown
        if rarer and page.locator("details.rarer:not([open])").count():
            hand.press("m") if hand.how == "keys" else hand.point(
                page.locator("details.rarer summary")
            )
        place = page.locator(f'input[name=holds][value="{value}"]')
        if hand.how != "keys":
            hand.point(place.locator(".."))
        elif not rarer:
            hand.press(str(shown.index(value) + 1))
        else:
            rows = page.locator("[data-step=holds] .choices input[name=holds]:visible")
            at = [one.get_attribute("value") for one in rows.all()].index(value) + 1
            if at < 10:
                hand.press(str(at))
            else:
                while not place.evaluate("(one) => one === document.activeElement"):
                    hand.press("Tab")
                hand.press("Space")
    if "holds" not in right:
        hand.press("0") if hand.how == "keys" else hand.point(page.locator(".choice.none"))
    hand.press("Enter") if hand.how == "keys" else hand.point(page.locator(".submit-bar .primary"))
    n = len(right.get("holds", []))
    return f"{len(asked)} names to be told; {n or 'none'} hold{'s' if n == 1 else ''}"


def go_to(hand: Hand, step: str) -> None:
    """Nothing; the step is at hand."""
    steps = [
        one.get_attribute("data-step") for one in hand.page.locator("[data-step]:has(input)").all()
    ]
    at = hand.page.locator("[data-step][data-at-hand]").get_attribute("data-step")
    apart = steps.index(step) - steps.index(at)
    hand.press(*(["j"] * apart if apart > 0 else ["k"] * -apart))


def ready(page: Page) -> None:
    """Nothing; the page's script runs, if it has one."""
    page.wait_for_selector("html[data-ready], html:not(:has(form#answer))", state="attached")


def sent(page: Page, before: str) -> None:
    """Nothing; the next page is there."""
    page.wait_for_url(lambda address: address != before)
    ready(page)


def learn(page: Page, url: str, kind: str) -> None:
    """Nothing; the terms are agreed to and the tutorial of a kind is passed, if they stood in the
    way.
    """
    page.goto(f"{url}/annotate/next/?kind={kind}")
    if page.locator("form#consent").count():
        page.locator("form#consent [name=agree]").check()
        page.locator("form#consent .primary").click()
        page.goto(f"{url}/annotate/next/?kind={kind}")
    if "/tutorial/" not in page.url:
        page.goto(f"{url}/annotate/tutorial/{kind}/")
    if not page.locator("form#begin").count():
        return
    hand = Hand(page)
    page.locator("form#begin .primary").click()
    lessons = right_answers()
    while True:
        ready(page)
        if page.locator("form#answer[data-tutorial]").count():
            right = lessons[str(page.locator("#answer").get_attribute("data-tutorial"))]
            send_right(hand, kind, right)
        elif page.locator("form#explained").count():
            before = page.url
            hand.press("Enter")
            page.wait_for_url(lambda address, before=before: address != before)
        else:
            break
    print(f"tutorial of {kind}: {hand.n} keys, {time.monotonic() - hand.begun:.0f} s")


def send_right(hand: Hand, kind: str, right: dict[str, list[str]]) -> None:
    page = hand.page
    if kind == "relation":
        judge_pair(hand, right)
    elif kind == "entities":
        mark_names(hand, json.loads(right["mentions"][0]))
    else:
        judge_pairs(hand, json.loads(right["pairs"][0]))
    page.wait_for_selector("form#explained")


# -- Documents


def mark_names(hand: Hand, mentions: list[dict[str, Any]]) -> None:
    """Marks what is true in a document, from its first name to its last, and sends it."""
    page = hand.page
    data = json.loads(str(page.locator("#document-data").text_content()))
    types = {one["name"]: one for one in data["types"]}
    begins = {begin: at for at, (begin, _) in enumerate(data["tokens"])}
    ends = {end: at for at, (_, end) in enumerate(data["tokens"])}
    page.locator("#text").focus()
    first_of: dict[tuple[int, ...], int] = {}
    for mention in sorted(mentions, key=lambda one: one["span"]):
        begin, end = mention["span"]
        first, last = begins[begin], ends[end]
        reach(hand, first, last)
        pressed = page.locator("#inspector .type[aria-pressed=true]")
        if not pressed.count() or pressed.get_attribute("data-value") != mention["type"]:
            hand.press(types[mention["type"]]["key"])
        kind = types[mention["type"]]["value"]
        if kind == "date":
            say_date(hand, mention.get("value", "none"))
        elif kind is None:
            say_who(hand, tuple(mention["canonical"]), (begin, end), first_of)
    for _ in range(40):
        if page.locator("#primary").inner_text().startswith("Send"):
            break
        hand.press("c")
    hand.press("Control+Enter")


def reach(hand: Hand, first: int, last: int) -> None:
    """Goes to words: by the key for the next name as long as it leads there, else word by word."""
    page = hand.page
    for _ in range(3):
        at = page.evaluate(SELECTED)
        if at and at[0] >= first:
            break
        before = at
        hand.press("j")
        at = page.evaluate(SELECTED)
        if at and at[0] < (before[0] if before else 0):
            break
    for _ in range(200):
        at = page.evaluate(SELECTED)
        if at and at[0] == first:
            break
        hand.press("ArrowRight" if not at or at[-1] < first else "ArrowLeft")
    for _ in range(30):
        at = page.evaluate(SELECTED)
        if at[-1] == last:
            break
        hand.press("Shift+ArrowRight" if at[-1] < last else "Shift+ArrowLeft")


def say_date(hand: Hand, value: str) -> None:
    """Nothing; a date has its value: what is there, what the page proposes, or what is typed."""
    box = hand.page.locator("#inspector #value")
    if box.input_value() and value in (box.input_value(), "none"):
        return
    proposal = hand.page.locator("#inspector [data-act=propose]")
    if proposal.count() and value in (proposal.get_attribute("data-value"), "none"):
        hand.press("1")
        return
    hand.press("w", "Control+a", *(value if value != "none" else ""), "Enter")


def say_who(
    hand: Hand, name: tuple[int, ...], span: tuple[int, int], numbers: dict[tuple[int, ...], int]
) -> None:
    page = hand.page
    rows = page.locator("#inspector .who-one[data-act=entity]")
    chosen = page.locator("#inspector .who-one[aria-pressed=true]")
    wanted = numbers.get(name)
    value = chosen.get_attribute("data-value") if chosen.count() else None
    if wanted is None:
        if chosen.count() == 0 or chosen.get_attribute("data-digit") != "0":
            hand.press("0")
    elif value != str(wanted):
        offered = {
            one.get_attribute("data-value"): one.get_attribute("data-digit") for one in rows.all()
        }
        if digit := offered.get(str(wanted)):
            hand.press(digit)
        else:
            words = page.locator(f"#entities li[data-entity='{wanted}'] .words").inner_text()
            hand.press("e", *words[:4], "Enter")
    current = page.locator("#entities li.current").get_attribute("data-entity")
    numbers[name] = int(str(current))


def judge_pairs(hand: Hand, right: dict[str, list[str]]) -> None:
    """Says of each pair of a document what holds, and sends it."""
    page = hand.page
    data = json.loads(str(page.locator("#document-data").text_content()))
    pairs = [(data["options"][options], sentence) for _, _, options, sentence in data["pairs"]]
    holds = [
        [one["part"] for one in offered if set(one["part"].split()) & set(right.get(str(at), []))]
        for at, (offered, _) in enumerate(pairs)
    ]
    at = 0
    while at < len(pairs):
        offered, sentence = pairs[at]
        rest = [n for n in range(at, len(pairs)) if pairs[n][1] == sentence]
        if len(rest) > 1 and rest[-1] == at + len(rest) - 1 and not any(holds[n] for n in rest):
            hand.press(*(["x"] if rest[-1] + 1 < len(pairs) else ["x", "Enter"]))
            at += len(rest)
            continue
        open_ones = [one["part"] for one in offered if not one["rare"]]
        for part in holds[at]:
            if part in open_ones:
                hand.press(str(open_ones.index(part) + 1))
            else:
                hand.point(page.locator(f'.choices input[value="{part}"]'))
        hand.press(*([] if holds[at] else ["0"]), "Enter")
        at += 1
    if page.locator("form#answer").count():
        hand.press("Enter")


def measure(page: Page, url: str, how: str, number: int, knows: Knowledge) -> None:
    """Prints what so many questions about two names take."""
    kinds: dict[str, list[int]] = defaultdict(list)
    page.goto(f"{url}/annotate/next/?kind=relation")
    begun = time.monotonic()
    for _ in range(number):
        ready(page)
        if not page.locator("form#answer[data-interface=relation]").count():
            break
        hand, before = Hand(page, how), page.url
        kind = judge_pair(hand, true_answer(form_of(page), knows))
        sent(page, before)
        kinds[kind].append(hand.n)
    seconds = time.monotonic() - begun
    everything = [n for counts in kinds.values() for n in counts]
    rows = [
        [kind, len(counts), sum(counts), f"{sum(counts) / len(counts):.1f}"]
        for kind, counts in sorted(kinds.items())
    ]
    rows.append(
        [
            "all",
            len(everything),
            sum(everything),
            f"{sum(everything) / max(1, len(everything)):.1f}",
        ]
    )
    print(f"\nquestions about two names, {how}, {seconds:.1f} s")
    tables.show(f"keys-{how}", ["kind", "questions", how, f"{how} a question"], rows)


def measure_document(page: Page, url: str, kind: str, knows: Knowledge) -> None:
    """Prints what the names or the pairs of a document take, if one is open."""
    learn(page, url, kind)
    page.goto(f"{url}/annotate/next/?kind={kind}")
    ready(page)
    if not page.locator(f"form#answer[data-interface={kind}]").count():
        print(f"\n{kind}: no document is open")
        return
    data = json.loads(str(page.locator("#document-data").text_content()))
    document = str(page.locator("#answer").get_attribute("data-document"))
    hand, before = Hand(page), page.url
    if kind == "entities":
        mentions = mentions_of(data, document, knows)
        mark_names(hand, mentions)
        n, what = len(mentions), "marks"
    else:
        said = reading.pairs(
            data, document, lambda *pair: knows.true_answer(*pair).holds, 1.0, random.Random(1)
        )
        judge_pairs(hand, json.loads(said))
        n, what = len(data["pairs"]), "pairs"
    sent(page, before)
    seconds = time.monotonic() - hand.begun
    print(
        f"\n{kind} of {document}: {hand.n} keys for {n} {what}, {hand.n / n:.1f} each,"
        f" {seconds:.0f} s"
    )


def mentions_of(data: dict[str, Any], document: str, knows: Knowledge) -> list[dict[str, Any]]:
    """What is to be marked in a document, as its form sends it."""
    marks = reading.marks(data, document, knows.mentions_of, 1.0, 1.0, random.Random(1))
    return list(json.loads(marks))


def main(
    url: str = "http://127.0.0.1:8000", files: str = "var/demo/files", number: str = "10"
) -> None:
    """Prints what all of it takes."""
    if not Path(files).exists():
        print(f"There is no {files}: run make demo in another terminal first.")
        return
    knows = Knowledge(Path(files) / "mentions.tsv", Path(files) / "gold.tsv")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        context = browser.new_context(viewport={"width": 1400, "height": 900})
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        page.goto(f"{url}/login/")
        page.fill("[name=username]", LOGIN[0])
        page.fill("[name=password]", LOGIN[1])
        page.get_by_role("button", name="Log in").click()
        page.wait_for_url("**/annotate/**")
        learn(page, url, "relation")
        for how in ("keys", "clicks"):
            measure(page, url, how, int(number), knows)
        phone = browser.new_context(**PHONE, storage_state=context.storage_state()).new_page()
        measure(phone, url, "taps", int(number), knows)
        for kind in ("entities", "relations_exhaustive"):
            measure_document(page, url, kind, knows)
        browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
