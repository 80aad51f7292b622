"""Simulated annotators: programs that log in and answer through the same pages as people, over
HTTP.

They read the same pages as people. True answers are passed in as `knows`, and the right answers of
our tutorials are read from their files. No database is used.
"""

from __future__ import annotations

import json
import random
import re
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlencode, urlsplit

from rehearsal import reading
from rehearsal.browser import Browser, Form, Page
from rehearsal.opinions import FIELDS_BY_INTERFACE, Opinions

Span = tuple[int, int]
ANY_KIND = ""
MOST_ERRORS = 100
MOST_STEPS = 200  # pages of terms and tutorials before a first question
LONGEST_WAIT = 4  # times the first wait, between two looks at a service that has nothing to judge
OF_RELATIONS, OF_NAMES = ("relation", "relations_exhaustive"), ("entities",)
INTERFACES = Path(__file__).resolve().parent.parent / "annotation" / "interfaces"
HIT = re.compile(r'class="hit" href="[^"]*hitId=(\w+)')
FRAME = re.compile(r'<iframe[^>]*src="([^"]*)"')


class Truth(Protocol):
    """The truth about two mentions, A before B, or about one that is given twice. `holds` has
    (predicate, ">" from A to B or "<").
    """

    @property
    def subject_canonical(self) -> Span: ...
    @property
    def object_canonical(self) -> Span: ...
    @property
    def holds(self) -> Iterable[tuple[str, str]]: ...


Knows = Callable[[str, Span, Span], Truth]


def right_answers() -> dict[str, dict[str, list[str]]]:
    """Return question of a tutorial -> its right answer."""
    answers = {}
    for path in sorted(INTERFACES.glob("*/tutorial.json")):
        lesson = json.loads(path.read_text(encoding="utf-8"))
        for attempt, asked in enumerate((lesson["questions"], lesson.get("again", [])), start=1):
            for number, question in enumerate(asked, start=1):
                answers[f"{lesson['interface']}/{attempt}/{number}"] = question["right"]
    return answers


class LoginRefused(Exception):
    """Raised if a worker could not log in. Another try would lock out other workers at the same
    address.
    """


@dataclass
class Work:
    """The work of a crowd: answers, intended mistakes, errors, seconds, and refused logins."""

    answers: int = 0
    wrong: int = 0
    errors: list[str] = field(default_factory=list)
    seconds: float = 0.0
    refused: list[str] = field(default_factory=list)

    @property
    def answers_per_second(self) -> float:
        """Return the number of answers per second; 0 before any time has passed."""
        return self.answers / self.seconds if self.seconds else 0.0


class Crowd:
    """Workers with logins, of known accuracy and speed. Each answer is wrong with probability 1 −
    accuracy. With several `kinds` of questions the workers are assigned to them in turn.

    They neither request nor learn kinds without known answers, and give back questions that they
    cannot answer. `tell` is called with each error at once.
    """

    def __init__(
        self,
        base_url: str,
        logins: Sequence[tuple[str, str]],
        knows: Knows | None,
        *,
        finds: reading.Finds | None = None,
        opinions: Opinions | None = None,
        tell: Callable[[str], None] = lambda _: None,
        kinds: Sequence[str] = (ANY_KIND,),
        mention_recall: float = 0.8,
        accuracy: float | Sequence[float] = 1.0,
        seconds: float = 0.0,
        seed: int = 1,
        login_path: str = "/login/",
    ) -> None:
        accuracies = [accuracy] * len(logins) if isinstance(accuracy, float) else list(accuracy)
        self.work_done = Work()
        self.finds, self.mention_recall = finds, mention_recall
        self.opinions, self.tell = opinions, tell
        able = {OF_RELATIONS: knows, OF_NAMES: finds, tuple(FIELDS_BY_INTERFACE): opinions}
        self.judges = [name for names, how in able.items() if how is not None for name in names]
        self.judges_all = None not in able.values()
        if strange := set(kinds) - {ANY_KIND, *self.judges}:
            raise ValueError(f"This crowd knows nothing of questions of {sorted(strange)[0]!r}.")
        self._lock = threading.Lock()
        self.workers = []
        for number, (login, right) in enumerate(zip(logins, accuracies, strict=True)):
            rng = random.Random(f"{seed}:{number}")
            kind = kinds[number % len(kinds)]
            browser = Browser(base_url)
            self.workers.append(
                Worker(self, browser, login, knows, right, seconds, rng, login_path, kind)
            )

    def work(
        self, until: Callable[[], bool] | None = None, *, poll: float = 0.2, at_most: float = 600.0
    ) -> Work:
        """Run the workers until `until()` is true (by default: until nobody finds a question) or
        time is over, and return what they did.
        """
        begin = time.monotonic()
        stop = threading.Event()
        threads = [
            threading.Thread(target=self._run_worker, args=(worker, stop, until is None, poll))
            for worker in self.workers
        ]
        for thread in threads:
            thread.daemon = True
            thread.start()
        while any(thread.is_alive() for thread in threads):
            if time.monotonic() - begin > at_most or (until is not None and until()):
                stop.set()
            time.sleep(min(poll, 0.05))
        self.work_done.seconds += time.monotonic() - begin
        return self.work_done

    def _run_worker(
        self, worker: Worker, stop: threading.Event, leave_when_empty: bool, poll: float
    ) -> None:
        wait = poll
        while not stop.is_set():
            try:
                has_answered = worker.answer_next()
            except LoginRefused as refused:
                with self._lock:
                    self.tell(str(refused))
                    self.work_done.errors.append(str(refused))
                    self.work_done.refused.append(worker.login[0])
                break
            except Exception as error:  # reported by the crowd; the other workers continue
                self.note(worker, error)
                worker.log_in_anew()
                has_answered = False
            if not has_answered and leave_when_empty:
                break
            if has_answered:
                wait = poll
            else:
                # A worker without work waits, as the home page is the most expensive one.
                stop.wait(wait)
                wait = min(2 * wait, LONGEST_WAIT * poll)
        worker.browser.close()

    def note(self, worker: Worker, error: Exception) -> None:
        """Record an error of a worker, and report it if it is new."""
        said = f"{worker.login[0]}: {type(error).__name__}: {error}"
        with self._lock:
            if said not in self.work_done.errors:
                self.tell(said)
            self.work_done.errors.append(said)
            del self.work_done.errors[:-MOST_ERRORS]

    def count(self, *, is_wrong: bool) -> None:
        """Count an answer."""
        with self._lock:
            self.work_done.answers += 1
            self.work_done.wrong += is_wrong


@dataclass
class Worker:
    """One simulated worker, who judges through the pages of the service."""

    crowd: Crowd
    browser: Browser
    login: tuple[str, str]
    knows: Knows | None
    accuracy: float
    seconds: float
    rng: random.Random
    login_path: str
    kind: str
    """The only kind that this worker wants; empty: all kinds that they can judge"""
    page: Page | None = None
    known: bool = False
    learned: dict[str, dict[str, list[str]]] = field(default_factory=right_answers)
    """question of a tutorial -> the right answer; explanations override earlier knowledge"""

    def log_in_anew(self) -> None:
        """Log in again and reload, after an error."""
        self.page, self.known = None, False
        self.browser.close()

    wanted: str = ANY_KIND
    """The kind that was requested last"""

    @property
    def _next_question_url(self) -> str:
        """Return the address of the next question of the wanted kind."""
        return f"/annotate/next/?kind={self.wanted}" if self.wanted else "/annotate/next/"

    def _next_page(self) -> Page | None:
        """Return the page of a question that this worker can answer, after terms and tutorials."""
        page, self.page = self.page, None
        # The kinds to ask for in turn; one empty kind if this worker can answer every kind
        kinds = [self.kind] if self.kind or self.crowd.judges_all else self.crowd.judges
        if page is not None and (
            self._can_answer(page := self._pass_tutorial(page)) or len(kinds) == 1
        ):
            return page if self._can_answer(page) else None
        for self.wanted in kinds:
            page = self._pass_tutorial(self.browser.get(self._next_question_url))
            if page.has_form("answer") and not self._can_answer(page):
                self._give_back(page)
                page = self._pass_tutorial(self.browser.get(f"/annotate/tutorial/{self.wanted}/"))
            if self._can_answer(page):
                return page
        return None

    def _give_back(self, page: Page) -> None:
        """Return the questions of a page to the queue."""
        form = page.form("answer")
        self.browser.send(Form("", f"{page.path}return/", {}), form.form_values())

    def _can_answer(self, page: Page) -> bool:
        """Return whether this worker can answer the question of a page."""
        if not page.has_form("answer"):
            return False
        return page.form("answer").data.get("interface", OF_RELATIONS[0]) in self.crowd.judges

    def log_in(self) -> None:
        page = self.browser.get(self.login_path)
        name, password = self.login
        if page.path.startswith(self.login_path):  # else still logged in, and led past it
            form = page.form()
            page = self.browser.submit(
                form, {**form.form_values(), "username": [name], "password": [password]}
            )
        if page.path.startswith(self.login_path):
            raise LoginRefused(login_refusal(page, name))
        self.known = True

    def answer_next(self) -> bool:
        """Answer the next question, or give it back; return False if there is none."""
        if not self.known:
            self.log_in()
        page = self._next_page()
        if page is None:
            return False
        self.page = self._send_answer(page)
        if self.page is None:
            self._give_back(page)
        return True

    def _send_answer(self, page: Page) -> Page | None:
        """Send an answer, and return the next page; None if the answer was refused."""
        form = page.form("answer")
        wrong = self.rng.random() >= self.accuracy
        try:
            values = form.form_values() | self._answer_fields(page, form, wrong)
        except Exception as error:  # a page of which a simulated worker knows nothing yet
            self.crowd.note(self, error)
            return None
        if self.seconds:
            time.sleep(self.seconds * self.rng.uniform(0.5, 1.5))
        after = self.browser.submit(form, values)
        if after.status == 422:
            self.crowd.note(self, ValueError(f"an answer was refused on {page.path}"))
            return None
        self.crowd.count(is_wrong=wrong)
        return after

    def _pass_tutorial(self, page: Page) -> Page:
        """Agree to the terms and do the tutorial if they come first, and return the next page."""
        for _ in range(MOST_STEPS):
            if page.has_form("consent"):
                form = page.form("consent")
                page = self.browser.submit(form, form.form_values() | {"agree": ["yes"]})
            elif page.has_form("begin") and self.kind and self.kind not in page.path:
                # A kind that this worker never wants, of which there is more just now.
                page = self.browser.get(f"/annotate/tutorial/{self.kind}/")
            elif page.has_form("begin") and self._teaches_unknown_kind(page):
                break
            elif page.has_form("begin"):
                page = self.browser.submit(page.form("begin"), page.form("begin").form_values())
            elif page.has_form("explained"):
                form = page.form("explained")
                self.learned[form.data["tutorial"]] = json.loads(form.data["right"])
                page = self.browser.get(form.data["next"])
                if not any(map(page.has_form, ("begin", "answer", "explained"))):  # passed, or not
                    page = self.browser.get(self._next_question_url)
            elif page.has_form("answer") and "tutorial" in page.form("answer").data:
                form = page.form("answer")
                page = self.browser.submit(
                    form, form.form_values() | self._tutorial_answer(page, form)
                )
            else:
                break
        return page

    def _teaches_unknown_kind(self, page: Page) -> bool:
        """Return whether a tutorial is of a kind that this worker cannot answer."""
        lesson = page.path.partition("/tutorial/")[2].strip("/")
        return bool(lesson) and lesson not in self.crowd.judges

    def _tutorial_answer(self, page: Page, form: Form) -> dict[str, list[str]]:
        """Return the fields of an answer in a tutorial: the right ones, or a guess for an unknown
        tutorial.
        """
        if (right := self.learned.get(form.data["tutorial"])) is not None:
            return right
        kind = form.data.get("interface", "relation")
        if kind == "entities":
            return {"mentions": ["[]"], "nothing": ["1"]}
        if kind == "relations_exhaustive":
            pairs = json.loads(page.data["document-data"])["pairs"]
            return {"pairs": [json.dumps({str(number): [] for number in range(len(pairs))})]}
        sides = [side for side in ("a", "b") if form.options(side)]
        return {side: form.options(side)[:1] for side in sides} | {"none": ["1"]}

    def _answer_fields(self, page: Page, form: Form, answer_wrongly: bool) -> dict[str, list[str]]:
        """Return the fields of an answer to the page's kind of question."""
        document = form.data["document"]
        if form.data.get("interface", "relation") == "relation":
            return self.answer_pair(form, answer_wrongly)
        if (says := FIELDS_BY_INTERFACE.get(form.data["interface"])) is not None:
            assert self.crowd.opinions is not None
            return says(page, form, self.crowd.opinions, answer_wrongly, self.rng)
        shown = json.loads(page.data["document-data"])
        if form.data["interface"] == "relations_exhaustive":
            holds = lambda key, a, b: self._true_answer(key, a, b).holds  # noqa: E731
            pairs = reading.pair_answers(shown, document, holds, self.accuracy, self.rng)
            return {"pairs": [pairs]}
        finds, recall = self.crowd.finds, self.crowd.mention_recall
        assert finds is not None
        marks = reading.marked_mentions(shown, document, finds, recall, self.accuracy, self.rng)
        return {"mentions": [marks], "nothing": ["1"]}

    def _true_answer(self, document: str, a: Span, b: Span) -> Truth:
        assert self.knows is not None
        return self.knows(document, a, b)

    def answer_pair(self, form: Form, answer_wrongly: bool) -> dict[str, list[str]]:
        """Return the fields of an answer about two names, or about the referent of one."""
        ends = [form.data.get(side, form.data["a"]).split("-") for side in ("a", "b")]
        a, b = ((int(begin), int(end)) for begin, end in ends)
        truth = self._true_answer(form.data["document"], a, b)
        if "b" not in form.data:
            alone = self._true_referents(form, truth)
            return self._answer_with_wrong_referents(form, alone, 1.0) if answer_wrongly else alone
        options = form.options("holds")
        true = {f"{name}{direction}" for name, direction in truth.holds}
        holds = [option for option in options if true.intersection(option.split())]
        answer = self._true_referents(form, truth)
        if answer_wrongly:
            holds = reading.wrong_relations(options, holds, self.rng)
            answer = self._answer_with_wrong_referents(form, answer, 0.5)
        return answer | ({"holds": holds, "none": []} if holds else {"holds": [], "none": ["1"]})

    def _true_referents(self, form: Form, truth: Truth) -> dict[str, list[str]]:
        """Return the chosen referent of each name that has candidates."""
        links = {
            "a": (truth.subject_canonical, getattr(truth, "subject_name", "")),
            "b": (truth.object_canonical, getattr(truth, "object_name", "")),
        }
        return {
            side: [
                self._referent_value(form, side, span, words or form.data.get(f"{side}-words", ""))
            ]
            for side, (span, words) in links.items()
            if form.options(side)
        }

    def _answer_with_wrong_referents(
        self, form: Form, answer: dict[str, list[str]], probability: float
    ) -> dict[str, list[str]]:
        """Return the referents, each replaced by a wrong one with this probability."""
        return {
            side: [reading.wrong_referent(form.options(side), chosen[0], self.rng)]
            if self.rng.random() < probability
            else chosen
            for side, chosen in answer.items()
        }

    @staticmethod
    def _referent_value(form: Form, side: str, span: Span, name: str) -> str:
        """Return the canonical mention, else a candidate with the same words, else "not listed"."""
        value, options = f"{span[0]}-{span[1]}", form.options(side)
        if value in options:
            return value
        for option in options:
            words = form.labels.get((side, option), "").partition(" not ")[0]
            if name and words.casefold() == name.casefold():
                return option
        return "other"


def login_refusal(page: Page, name: str) -> str:
    """Return why a login was refused, as a sentence."""
    why = "this name and password do not go together"
    if page.status == 429:
        why = "too many wrong passwords were tried, so wait a quarter of an hour"
    return f"{name} was not let in: {why}."


class MarketCrowd(Crowd):
    """Workers of a marketplace, by their ids there."""

    def __init__(
        self, market: str, site: str, names: Sequence[str], knows: Knows | None, **how: Any
    ) -> None:
        super().__init__(site, [(name, "") for name in names], knows, **how)
        self.workers = [
            _MarketWorker(**vars(worker), market=Browser(market)) for worker in self.workers
        ]


@dataclass
class _MarketWorker(Worker):
    market: Browser = field(kw_only=True)
    refused: set[str] = field(default_factory=set, kw_only=True)
    """HITs that this worker cannot do: met before, or no longer needed"""

    def log_in_anew(self) -> None:
        super().log_in_anew()
        self.market.close()

    def answer_next(self) -> bool:
        """Answer all questions of a HIT, or return it; return False if there is none."""
        worker_id = self.login[0]
        listing = self.market.get("/?" + urlencode({"workerId": worker_id}))
        offered = [hit for hit in HIT.findall(listing.text) if hit not in self.refused]
        if not offered:
            return False
        hit = self.rng.choice(offered)
        page = self.market.submit(
            Form("", "/accept", {}), {"workerId": [worker_id], "hitId": [hit]}
        )
        frame = FRAME.search(page.text)
        if frame is None:  # somebody else was quicker
            return True
        address = urlsplit(unescape(frame.group(1)))
        return self._work_on_hit(self.browser.get(f"{address.path}?{address.query}"), hit, page)

    def _work_on_hit(self, page: Page, hit: str, work: Page) -> bool:
        after: Page | None = self._pass_tutorial(page)
        while after is not None and self._can_answer(after):
            after = self._send_answer(after)
        if after is None or not after.has_form("send"):
            self.refused.add(hit)
            form = work.form("return")
            self.market.submit(form, form.form_values())
            return True
        self.market.submit(after.form("send"), after.form("send").form_values())
        return True
