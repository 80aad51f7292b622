"""Annotators who know the truth and do only what the pages tell them: do the pages themselves bias
precision or recall?

usage: python benchmarks/as_told.py [REPEATS] [DOCUMENTS] [SEED]
       (default: 400 repeats, 60 documents, seed 1)

The newspaper of the demo and its ten systems. Whatever anybody may be asked is asked once: every
document is read in full, and every pair that a system predicts is judged, in a document that was
read and in one that was not; by three people each, on what the pages show (the payloads of the
track and the parsers of the interfaces, without HTTP). They mark only the kinds of names that they
were told of; where what the text says is not to be chosen they flag the question or take what
stands nearest, or find nothing; of choices whose words all fit they take any.

Then each repeat reads a quarter of the documents, asks about each pair with chance 0.3, and
estimates as the service does. So what differs from the truth, beyond chance, comes from a page.
"before" are the same people on the pages as they once were: without the relations that were settled
for a pair already, with a flag “not on the list”, with four kinds of names in the tutorial, and
with choices called by their bare words. Bias is in points; z is the bias of a system in Monte Carlo
standard errors, the largest of all systems.
"""

import json
import os
import random
import sys
import tempfile
import time
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kbpo.settings")
import django

django.setup()

from annotation.interfaces.registry import interface_of  # noqa: E402
from annotation.interfaces.relation.interface import page_of  # noqa: E402
from annotation.interfaces.shared.flag import PROBLEMS  # noqa: E402
from annotation.interfaces.shared.mentions import settle_mentions  # noqa: E402
from annotation.interfaces.shared.reading import Reading  # noqa: E402
from annotation.models import Question  # noqa: E402
from annotation.workers.teach import shipped  # noqa: E402
from benchmarks import exhaustive_recall, tables  # noqa: E402
from formats.schema import shipped_schema  # noqa: E402
from kbpo.corpus.models import Document  # noqa: E402
from kbpo.tracks.kbp.judge import Clusters, directed  # noqa: E402
from kbpo.tracks.kbp.pairs import Claim, Pair  # noqa: E402
from kbpo.tracks.kbp.questions import payload_of, what_to_show  # noqa: E402
from kbpo.tracks.kbp.whole import mentions_payload, relations_payload  # noqa: E402
from rehearsal import reading  # noqa: E402
from rehearsal.annotators import Crowd  # noqa: E402
from rehearsal.browser import Form  # noqa: E402
from rehearsal.newspaper.extract import extract  # noqa: E402
from rehearsal.newspaper.knows import Knowledge  # noqa: E402
from rehearsal.newspaper.score import Gold  # noqa: E402
from rehearsal.newspaper.write import imagine, write  # noqa: E402

PEOPLE, READ, ASKED, LIMIT = 3, 0.25, exhaustive_recall.ASKED, 4
RELATION = interface_of("relation")
PAGES = ("now", "before")
ARMS = ("truth", *PAGES)
CRITERIA = ("relation", "correct")


def types_told(pages: str) -> set[str]:
    """The kinds of names that people learn of."""
    if pages == "before":
        return {"PER", "ORG", "GPE", "DATE"}
    questions = shipped()["entities"].questions
    marks = [json.loads(one) for question in questions for one in question["right"]["mentions"]]
    return {mark["type"] for some in marks for mark in some}


@dataclass
class Said:
    """What people say of a document's pairs, (a, b) -> the parts that hold (None: given up), and of
    its mentions.
    """

    holds: dict[tuple, set[str] | None]
    clusters: Clusters

    def judge(self, a, b, one) -> tuple[float, float]:
        """Whether a prediction is right by each criterion; NaN: nobody could say."""
        holds = self.holds[a, b]
        part = directed(one.predicate, one.subject <= one.object)
        relation = np.nan if holds is None else float(part in holds)
        links = [
            self.clusters.refers(one.subject, one.subject_canonical),
            self.clusters.refers(one.object, one.object_canonical),
        ]
        return relation, relation * min(links)


class Newspaper:
    """The documents, what systems predict of them, and what people say on some pages."""

    def __init__(self, n_documents: int, seed: int, directory: Path) -> None:
        write(directory, documents=n_documents, seed=seed)
        self.knows = Knowledge(directory / "mentions.tsv", directory / "gold.tsv")
        world, documents = imagine(n_documents, seed)
        self.runs, self.gold = extract(documents, world, seed), Gold(documents)
        self.schema = shipped_schema("tac_kbp")
        self.documents = {one.id: _row(number, one) for number, one in enumerate(documents)}
        self.pairs: dict[str, dict[tuple, Pair]] = defaultdict(dict)
        self.names: dict[str, dict] = defaultdict(lambda: defaultdict(set))
        for run in self.runs:
            for one in run.predictions:
                self._claim(one, run.types)
        self.crowd = Crowd(
            "http://unused",
            [("", "")] * PEOPLE,
            self.knows.true_answer,
            finds=self.knows.mentions_of,
            as_told=True,
            seed=seed,
        )
        self.astray, self.asked = Counter(), Counter()
        self.marked: dict[str, Counter] = {pages: Counter() for pages in PAGES}

    def _claim(self, one, types) -> None:
        forward = one.subject <= one.object
        subject = one.subject, types.get(one.subject_entity, ""), one.subject_canonical
        object_ = one.object, types.get(one.object_entity, ""), one.object_canonical
        (a, a_type, a_name), (b, b_type, b_name) = (
            (subject, object_) if forward else (object_, subject)
        )
        document = self.documents[one.document]
        pair = self.pairs[one.document].setdefault((a, b), Pair(0, document.pk, a, b))
        pair.claims.append(Claim(directed(one.predicate, forward), a_type, b_type, a_name, b_name))
        self.names[one.document][a_name].add(a_type)
        self.names[one.document][b_name].add(b_type)

    def read(self, key: str, pages: str) -> tuple[dict, dict]:
        """What readers of a whole document find: its mentions, and what holds of its pairs."""
        document, told = self.documents[key], types_told(pages)
        payload = mentions_payload(document, self.schema)
        interface, question = interface_of("entities"), Question(payload=payload, target_id=0)
        shown, given = interface.render(question)["data"], []
        for person in self.crowd.workers:
            marks = reading.marks(
                shown, key, self.knows.mentions_of, 1.0, 1.0, person.rng, told=told
            )
            given.append(Reading(payload).marked({"mentions": [marks], "nothing": ["1"]}))
        found = settle_mentions(Reading(payload), given)
        values = {one.span: {"type": one.type, "canonical": list(one.cluster)} for one in found}
        payload = relations_payload(document, values, self.schema, "sentence")
        if not payload["pairs"]:
            return values, {}
        asked = Question(payload=payload, target_id=0)
        page = interface_of("relations_exhaustive").render(asked)["data"]
        holds = lambda name, a, b: self.knows.true_answer(name, a, b).holds  # noqa: E731
        said = json.loads(reading.pairs(page, key, holds, 1.0, random.Random(0)))
        spans = [tuple(one["span"]) for one in payload["mentions"]]
        chosen = {
            (spans[one["a"]], spans[one["b"]]): {
                part for some in said[str(number)] for part in some.split()
            }
            for number, one in enumerate(payload["pairs"])
        }
        return values, {pair: some for pair, some in chosen.items() if some}

    def say(self, key: str, pages: str, *, read: bool) -> tuple[Said, set]:
        """What people say of all that systems predict in a document, and its relations as it was
        read.
        """
        values, known = self.read(key, pages) if read else ({}, {})
        votes: dict[tuple, Counter] = defaultdict(Counter)
        holds: dict[tuple, set[str] | None] = {}
        for (a, b), pair in self.pairs[key].items():
            before = known.get((a, b), set())
            pair.shown = set(before)
            pair.linked = a in values and b in values
            if pair.linked and not pair.missing:
                holds[a, b] = before
                continue
            label = self.ask(key, pair, values, votes, pages)
            holds[a, b] = None if label is None else before | label
        linked = dict(values)
        for span, some in votes.items():
            best, n = some.most_common(1)[0]
            if span not in values and 2 * n > some.total():
                linked[span] = {"elsewhere": True} if best == "other" else {"canonical": list(best)}
        marks = {
            (key, a, part[:-1], b) if part.endswith(">") else (key, b, part[:-1], a)
            for (a, b), chosen in known.items()
            for part in chosen
        }
        return Said(holds, Clusters(self.documents[key].text, linked)), marks

    def ask(self, key, pair, values, votes, pages) -> set[str] | None:
        """What most of three people say that holds of a pair, of what their answer settles; None if
        most flag it.
        """
        sides, said = {}, {}
        for side, span in (("a", pair.a), ("b", pair.b)):
            types = {getattr(claim, f"{side}_type") for claim in pair.claims}
            types |= {values[span]["type"]} if span in values else set()
            sides[side] = {kind for kind in types if kind in self.schema.entity_types}
            said[span] = {tuple(values[span]["canonical"])} if span in values else set()
        visible, settles = what_to_show(pair, sides["a"], sides["b"], self.schema)
        if pages == "before":
            visible = [part for part in visible if part not in pair.shown] or settles
        document = self.documents[key]
        payload = payload_of(pair, document, self.names[key], sides, visible, self.schema, said)
        payload["a"]["target"], payload["b"]["target"] = 1, 2
        question = Question(payload=payload, shown=settles, target_id=0)
        form = form_of(payload, pages)
        true = self.knows.true_answer(key, pair.a, pair.b).holds
        offered = {part for option in form.options("holds") for part in option.split()}
        self.asked[pages] += 1
        self.astray[pages] += bool(true) and not offered & {"".join(one) for one in true}
        given = []
        for person in self.crowd.workers:
            raw = form.values() | person.answer_pair(form, False)
            if raw.get("problem") == ["missing"]:  # which no parser knows any more
                raw["problem"] = [next(iter(PROBLEMS))]
            given += RELATION.parse(question, raw)
        label, *_ = RELATION.aggregate(question, given)
        for one in given:
            if one.criterion == "linking":
                span = (pair.a, pair.b)[one.target_id - 1]
                choice = one.value["choice"]
                name = choice if choice == "other" else tuple(int(end) for end in choice.split("-"))
                votes[span][name] += 1
        return set(label.value["holds"]) if label.value else None


def _row(number: int, one) -> Document:
    sentences = [sentence.span for sentence in one.sentences]
    return Document(
        pk=number,
        key=one.id,
        title=one.title,
        date=one.date,
        text=one.text,
        token_begin=[begin for begin, _ in one.tokens],
        token_end=[end for _, end in one.tokens],
        sentence_begin=[begin for begin, _ in sentences],
        sentence_end=[end for _, end in sentences],
    )


def form_of(payload, pages: str) -> Form:
    """The form on the page about a pair."""
    page = page_of(payload, {})
    a, b = (side["span"] for side in page["sides"])
    form = Form("answer", "", {"document": page["key"], "a": a, "b": b})
    for side in page["sides"]:
        for value, words, fuller, _ in side["candidates"] if side["asked"] else []:
            told = f"{words}, not {fuller}" if fuller and pages == "now" else words
            form.fields.append((side["letter"], value, False))
            form.labels[side["letter"], value] = told
    form.fields += [("holds", one["part"], False) for one in [*page["common"], *page["rarer"]]]
    form.fields += [("problem", code, False) for code in PROBLEMS]
    form.fields += [("problem", "missing", False)] * (pages == "before")
    return form


class Answers:
    """What people say on some pages, as arrays: of each prediction and of each predicted fact, in a
    document that was not read and in one that was; and the facts that reading finds.
    """

    def __init__(self, paper: Newspaper, world: exhaustive_recall.World, pages: str) -> None:
        keys = sorted(paper.documents)
        place = {one: at for at, one in enumerate(paper.documents)}
        self.found = np.full(len(world.facts), pages == "truth")
        states = (
            []
            if pages == "truth"
            else [{key: paper.say(key, pages, read=read) for key in keys} for read in (False, True)]
        )
        facts = {fact: at for at, fact in enumerate(world.facts)}
        for key in keys if states else []:
            for mark in states[1][key][1]:
                self.found[facts[paper.gold.fact(*mark)]] = True
                paper.marked[pages][mark[2]] += 1
        targets, rows, self.system, self.document, self.truth = {}, [], [], [], []
        of_fact: dict[object, list[float]] = {}
        for system, run in enumerate(paper.runs):
            for one in run.predictions:
                a, b = sorted((one.subject, one.object))
                verdict = paper.gold.judge(one)
                true = [float(verdict[name]) for name in CRITERIA]
                said = [state[one.document][0].judge(a, b, one) for state in states] or [true] * 2
                rows.append([targets.setdefault((one.document, a, b), len(targets)), *said])
                fact = paper.gold.fact(one.document, one.subject, one.predicate, one.object)
                of_fact.setdefault(fact, [each[0] for each in said])
                self.system.append(system)
                self.document.append(place[one.document])
                self.truth.append(true)
        self.target = np.array([row[0] for row in rows])
        self.said = np.array([row[1:] for row in rows])  # rows, read or not, criterion
        self.of_fact = np.array([of_fact[fact] for fact in world.predicted]).T
        self.system, self.document = np.array(self.system), np.array(self.document)
        self.truth, self.n_targets = np.array(self.truth), len(targets)

    def precision(self, read, rng: np.random.Generator):
        """Estimates (criteria, systems) from a sample of pairs, in the state in which the documents
        are.
        """
        sampled = rng.random(self.n_targets)[self.target] < ASKED
        state = np.where(read[self.document], 1, 0)
        said = self.said[np.arange(state.size), state]
        number = np.bincount(self.system)
        estimates = []
        for at in range(len(CRITERIA)):
            rows = sampled & ~np.isnan(said[:, at])
            answered = rows.sum() / sampled.sum()
            off = np.where(rows, said[:, at] - 0.5, 0) / (ASKED * answered)
            estimates.append(0.5 + np.bincount(self.system, off) / number)
        return np.array(estimates)


def estimates(world, answers: Answers, repeats: int, seed: int) -> dict[str, np.ndarray]:
    """What is estimated -> (repeats, systems), from the same samples whatever the answers."""
    rng, n = np.random.default_rng(seed), world.n_documents
    values = defaultdict(list)
    for _ in range(repeats):
        drawn = rng.permutation(n)[: round(READ * n)]
        read = np.isin(np.arange(n), drawn)
        for name, some in zip(CRITERIA, answers.precision(read, rng), strict=True):
            values[f"precision, {name}"].append(some)
        state = np.where(read[world.row_document], 1, 0)
        said = answers.of_fact[state, np.arange(state.size)]
        plain, _, corrected = exhaustive_recall.estimate(
            world, drawn, None, answers.found, rng, said
        )
        values["recall, as it is found"].append(plain.recall.value)
        values["recall, misses put right"].append(corrected.recall.value)
    return {name: np.array(some) for name, some in values.items()}


def main() -> None:
    repeats, n_documents, seed = (
        int(sys.argv[at]) if len(sys.argv) > at else default
        for at, default in ((1, 400), (2, 60), (3, 1))
    )
    began = time.monotonic()
    world = exhaustive_recall.World(n_documents, seed)
    with tempfile.TemporaryDirectory() as directory:
        paper = Newspaper(n_documents, seed, Path(directory))
    rows, of_truth = [], {}
    for pages in ARMS:
        answers = Answers(paper, world, pages)
        values = estimates(world, answers, repeats, seed)
        weight = np.bincount(answers.system)
        truth = {
            f"precision, {name}": np.bincount(answers.system, answers.truth[:, at]) / weight
            for at, name in enumerate(CRITERIA)
        }
        for name, some in values.items():
            bias = some.mean(axis=0) - truth.get(name, world.truth)
            by_pages = (some - of_truth.setdefault(name, some)).mean(axis=0)
            spread = some.std(axis=0, ddof=1)
            z = by_pages / (spread / np.sqrt(repeats))
            worst = int(np.argmax(np.abs(z)))
            points = [100 * float(one) for one in (bias.mean(), by_pages[worst], spread.mean())]
            beyond = int((np.abs(z) > LIMIT).sum())
            rows.append([name, pages, points[0], points[1], float(z[worst]), beyond, points[2]])
    for pages in PAGES:
        share = paper.astray[pages] / paper.asked[pages]
        print(
            f"{pages}: {paper.asked[pages]} questions, in {share:.1%} what the text says is not to"
            f" be chosen; {paper.marked[pages].total()} relations found in full, of which"
            f" {paper.marked[pages]['per:title']} titles"
        )
    head = ["", "pages", "bias", "by pages", "z", f"beyond {LIMIT}", "spread"]
    tables.show("as_told", head, sorted(rows, key=lambda row: row[0]))
    print(
        f"{len(paper.runs)} systems, {n_documents} documents, {len(paper.gold.relations)} true"
        f" relations; {repeats} repeats; {time.monotonic() - began:.0f} s"
    )


if __name__ == "__main__":
    main()
