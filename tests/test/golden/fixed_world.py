"""Fixed worlds: whatever chance or a primary key decides in them is written down,
so that scores are always the same.

Files are uploaded and plans confirmed over the API, and every step is that of `manage.py tick`. The
corpus, its targets and its instances have primary keys that follow from their content, and so have
all random numbers: how files are read or in which order rows are stored changes no score.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from typing import Any

from django.apps import apps
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.db import connection
from django.test import Client

from kbpo import clock
from kbpo.accounts.models import Team, Token, User
from kbpo.corpus.models import Corpus, Document, Predicate
from kbpo.evaluation import correction
from kbpo.instances.models import Instance, Target
from kbpo.instances.record import NewLabel, record_labels
from kbpo.instances.targets import Place, make_targets
from kbpo.money.models import Budget, Price
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of
from tests.conftest import SCHEMA, sentences_of, tokens_of

Span = tuple[int, int]
SENTENCES = 6
WORKS, FOUNDED = "per:employee_or_member_of", "per:organizations_founded"
BASED = "org:place_of_headquarters"
LIVES, BORN = "per:place_of_residence", "per:place_of_birth"
TRUE = {WORKS: 0.75, FOUNDED: 0.3, BASED: 0.65, LIVES: 0.55, BORN: 0.35}
TYPES = {WORKS: "PER ORG", FOUNDED: "PER ORG", BASED: "ORG GPE", LIVES: "PER GPE", BORN: "PER GPE"}


def chance(*what: object) -> float:
    """A number in [0, 1) that follows from what it is about."""
    return int.from_bytes(sha256("|".join(map(str, what)).encode()).digest()[:6]) / 2**48


def model(name: str) -> Any:
    """The model of a table, wherever its class lives."""
    return apps.get_model(name)


@dataclass(frozen=True)
class Relation:
    """What a system may predict: unique by its key, which names its document, sentence and
    predicate."""

    key: str
    document: int
    subject: Span
    predicate: str
    object: Span
    subject_canonical: Span
    true: bool

    @property
    def pair(self) -> Place:
        return Place.of_unordered_pair(self.document, self.subject, self.object)

    @property
    def part(self) -> str:
        """The predicate in its direction, as labels name it."""
        return self.predicate + (">" if self.subject <= self.object else "<")


@dataclass
class FixedWorld:
    """A track whose chance is fixed; what happens to it is up to the test."""

    name: str
    files: Path
    design: str
    n_documents: int = 14
    half_width: str = "0.080"
    distributions: tuple[str, ...] = ("instance", "relation", "entity", "entity_relation")
    nonresponse: float = 0.0
    """Share of what is asked that nobody can answer"""
    relations: list[Relation] = field(default_factory=list)
    tokens: dict[str, str] = field(default_factory=dict)
    runs: dict[str, Submission] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.corpus = Corpus.objects.create(
            pk=71,
            name=self.name,
            slug="golden",
            schema=SCHEMA,
            n_documents=self.n_documents,
            hash_key="golden corpus",
        )
        for at, predicate in enumerate(SCHEMA["predicates"]):
            Predicate.objects.create(
                pk=7100 + at, corpus=self.corpus, name=predicate["name"], position=at
            )
        self.documents = [self._document(at) for at in range(self.n_documents)]
        for document in self.documents:
            self.relations += _relations_of(document)
        self._number_targets()
        owner = Team.objects.create(pk=7899, name="Lab", slug="lab")
        self.track = Track.objects.create(
            pk=73,
            corpus=self.corpus,
            name=self.name,
            slug="golden",
            secret="golden track",
            status="open",
            scope="sentence",
            design=self.design,
            target_half_width=Decimal(self.half_width),
            distributions=list(self.distributions),
            is_study=True,  # nothing is hidden, so that every number is stored
            owner=owner,
        )
        Price.objects.create(
            track=self.track, interface="relation", reward=Decimal("0.05"), seconds=20
        )
        Budget.objects.create(track=self.track, scope="track", cap=Decimal(5000))
        self.admin = User.objects.create(pk=79, username="golden-admin", is_staff=True)
        for at, name in enumerate(("Patterns", "Neural", "Third")):
            self._make_team(at, name)
        with connection.cursor() as cursor:  # seeds of batches depend on the numbers of submissions
            cursor.execute(
                "SELECT setval(pg_get_serial_sequence('submissions_submission', 'id'), 7300)"
            )

    def _make_team(self, at: int, name: str) -> None:
        team = Team.objects.create(pk=7900 + at, name=name, slug=name.lower())
        user = User.objects.create(
            pk=7900 + at,
            username=name.lower(),
            is_researcher=True,
            is_staff=True,  # who may upload for any team to a study
        )
        team.members.add(user)
        self.tokens[name] = Token.create_with_secret(user, "golden")[1]

    def _document(self, at: int) -> Document:
        text = " ".join(
            f"{_person(at, s)} works for Firm{at if s % 2 else at % 4}y{s} of Town{s}."
            for s in range(SENTENCES)
        )
        tokens, sentences = tokens_of(text), sentences_of(text)
        return Document.objects.create(
            pk=71000 + at,
            corpus=self.corpus,
            key=f"{'news' if at % 2 else 'blog'}-{at:02}",
            text=text,
            token_begin=[b for b, _ in tokens],
            token_end=[e for _, e in tokens],
            sentence_begin=[b for b, _ in sentences],
            sentence_end=[e for _, e in sentences],
        )

    def _number_targets(self) -> None:
        """Gives targets and instances primary keys, and targets random numbers,
        that follow from their content.
        """
        pairs = sorted({one.pair for one in self.relations}, key=_place_key)
        mentions = sorted(
            {Place("mention", one.document, span) for one in pairs for span in (one.a, one.b)},
            key=_place_key,
        )
        whole = [Place("document", one.pk) for one in self.documents]
        places = [*pairs, *mentions, *whole]
        made = make_targets(self.corpus, places)
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE instances_target t SET id = n.new, u = n.u"
                " FROM unnest(%s::bigint[], %s::bigint[], %s::float8[]) AS n (old, new, u)"
                " WHERE t.id = n.old",
                [
                    [made[place] for place in places],
                    [710_000 + at for at in range(len(places))],
                    [chance("u", _place_key(place)) for place in places],
                ],
            )
        self.target = make_targets(self.corpus, places)
        predicates = dict(Predicate.objects.filter(corpus=self.corpus).values_list("name", "pk"))
        Instance.objects.bulk_create(
            Instance(
                pk=720_000 + at,
                target_id=self.target[one.pair],
                document_id=one.document,
                predicate_id=predicates[one.predicate],
                subject_begin=one.subject[0],
                subject_end=one.subject[1],
                object_begin=one.object[0],
                object_end=one.object[1],
            )
            for at, one in enumerate(self.relations)
        )

    # What people do

    def upload(self, run: str, team: str, predicts: Callable[[Relation], bool]) -> Submission:
        """The draft of a run, planned."""
        lines = [self._line(run, one) for one in self.relations if predicts(one)]
        file = SimpleUploadedFile(f"{run}.jsonl", "\n".join(lines).encode())
        answer = self._call(team, "", {"track": "golden", "name": run, "file": file}, json=False)
        assert answer.status_code == 201, answer.content
        self.tick()
        self.runs[run] = Submission.objects.get(pk=answer.json()["id"])
        assert self.runs[run].status == "planned", self.runs[run].reason
        return self.runs[run]

    def confirm(self, run: str, team: str) -> None:
        """The run is confirmed; its first questions are asked."""
        answer = self._call(team, f"{self.runs[run].pk}/confirm/", {})
        assert answer.status_code == 200, answer.content
        self.tick()

    def judge(self, run: str, team: str) -> None:
        """The run is confirmed, and people answer until it is scored."""
        self.confirm(run, team)
        for _ in range(30):
            self.runs[run].refresh_from_db()
            if self.runs[run].status == "scored":
                return
            self.answer()
            self.tick()
        raise AssertionError(f"{run} is still {self.runs[run].status}: {self.runs[run].reason}")

    def _call(self, team: str, path: str, body: dict[str, Any], *, json: bool = True) -> Any:
        headers = {"Authorization": f"Token {self.tokens[team]}"}
        kind = {"content_type": "application/json"} if json else {}
        return Client().post(f"/api/submissions/{path}", body, headers=headers, **kind)

    def _line(self, run: str, one: Relation) -> str:
        document = next(row for row in self.documents if row.pk == one.document)
        subject_type, object_type = TYPES[one.predicate].split()
        line = {
            "doc": document.key,
            "subject": one.subject,
            "predicate": one.predicate,
            "object": one.object,
            "subject_type": subject_type,
            "object_type": object_type,
            "confidence": round(0.3 + 0.4 * chance(run, "sure", one.key) + 0.3 * one.true, 3),
        }
        if chance(run, "links", one.key) < 0.85:
            line["subject_canonical"] = one.subject_canonical
        return json.dumps(line)

    def tick(self) -> None:
        """Every step of the pipeline, once; scores are made again if anything changed."""
        model("evaluation.Rescoring").objects.update(next_try_at=clock.now() - timedelta(days=1))
        call_command("tick", stdout=io.StringIO())

    def waiting(self) -> list[int]:
        """Pairs that were drawn or are asked about and that nobody has judged,
        in the order of their numbers.
        """
        of: dict[int, set[int]] = {}
        drawn = model("sampling.Sample").objects.values_list("batch__submission_id", "target_id")
        for submission, target in drawn:
            of.setdefault(submission, set()).add(target)
        left: set[int] = (
            set().union(*kind_of(self.track).find_unanswered(of).values()) if of else set()
        )
        return list(
            Target.objects.filter(pk__in=left).order_by("u", "pk").values_list("pk", flat=True)
        )

    def answer(self, most: int | None = None) -> None:
        """People answer what waits, in its order. They err, and some of it they give up."""
        self.say(self.waiting()[:most])

    def say(self, targets: Iterable[int], *, source: str = "crowd") -> None:
        """Labels of pairs, and of their mentions."""
        labels: list[NewLabel] = []
        for pk in targets:
            labels += self._labels_of(pk, source)
        record_labels(labels)

    def _labels_of(self, pk: int, source: str) -> list[NewLabel]:
        place = next(place for place, number in self.target.items() if number == pk)
        if source == "crowd" and chance("given up", _place_key(place)) < self.nonresponse:
            return [NewLabel(pk, {}, source, "nonresponse", 3, f"question:{pk}")]
        parts = {one.part: one for one in self.relations if one.pair == place}
        holds = []
        for part, one in sorted(parts.items()):
            errs = source == "crowd" and chance("errs", one.key) < 0.1
            if one.true != errs:
                holds.append(part)
        votes = {part: 3 if chance("vote", part, pk) < 0.6 else 2 for part in holds}
        value = {"shown": sorted(parts), "holds": holds, "votes": votes}
        disagreement = round(chance("disagreement", _place_key(place)) * 0.4, 3)
        labels = [
            NewLabel(pk, value, source, "majority", 3, f"question:{pk}", disagreement=disagreement)
        ]
        for span in (place.a, place.b):
            mention = self.target[Place("mention", place.document, span)]
            said = {"canonical": list(self.canonical(place.document, span)), "type": "PER"}
            labels.append(NewLabel(mention, said, source, "majority", 3, f"mention:{mention}"))
        return labels

    def canonical(self, document: int, span: Span) -> Span:
        """What a mention refers to."""
        for one in self.relations:
            if one.document == document and one.subject == span:
                return one.subject_canonical
        return span

    def read_in_full(
        self, documents: Iterable[int], *, closed: bool = False, finds: float = 1.0
    ) -> None:
        """These documents are annotated whole: what readers marked of what is true is imported."""
        chosen = [self.documents[at] for at in documents]
        wanted = {one.pk for one in chosen}
        keys = {one.pk: one.key for one in chosen}
        gold = ["doc_id\tsubj_begin\tsubj_end\tpredicate\tobj_begin\tobj_end\tprov_begin\tprov_end"]
        mentions = ["doc_id\tbegin\tend\ttype\tentity\tgloss\tcanonical_begin\tcanonical_end"]
        spans: set[tuple[int, Span, str]] = set()
        for one in self.relations:
            if one.document not in wanted:
                continue
            of = dict(zip((one.subject, one.object), TYPES[one.predicate].split(), strict=True))
            spans |= {(one.document, span, kind) for span, kind in of.items()}
            if one.true and (closed or chance("marks", one.key) < finds):
                ends = [
                    *one.subject,
                    one.predicate,
                    *one.object,
                    min(one.subject[0], one.object[0]),
                    max(one.subject[1], one.object[1]),
                ]
                gold.append("\t".join(map(str, [keys[one.document], *ends])))
        text = {one.pk: one.text for one in chosen}
        for document, (begin, end), kind in sorted(spans):
            first = self.canonical(document, (begin, end))
            entity = text[document][slice(*first)]
            line = [keys[document], begin, end, kind, entity, text[document][begin:end], *first]
            mentions.append("\t".join(map(str, line)))
        paths = [self.files / name for name in ("gold.tsv", "mentions.tsv", "documents.txt")]
        texts = ["\n".join(gold), "\n".join(mentions), "\n".join(sorted(keys.values()))]
        for path, content in zip(paths, texts, strict=True):
            path.write_text(content + "\n")
        options = ["--documents", str(paths[2]), *(["--closed"] if closed else [])]
        call_command(
            "import_annotations",
            "golden",
            str(paths[0]),
            str(paths[1]),
            *options,
            stdout=io.StringIO(),
        )
        self.tick()

    def draw_checks(self, budget: int) -> None:
        """A round of checks is drawn for an expert."""
        answer = self._desk().post(
            "/desk/tracks/golden/experts/",
            {"verb": "draw", "budget": str(budget), "why": "To know."},
        )
        assert answer.status_code == 302, answer.content.decode()
        assert correction.tick() == 1

    def check(self, most: int) -> None:
        """An expert answers so many checks, rightly, as they come."""
        client = self._desk()
        for _ in range(most):
            address = client.get("/annotate/expert/golden/")["Location"]
            if address.endswith("/experts/"):
                return
            answer = client.post(
                address, self._rightly(int(address.rstrip("/").rpartition("/")[2]))
            )
            assert answer.status_code == 302, answer.content.decode()

    def end_checks(self) -> None:
        """The round is ended, whatever is not answered."""
        page = "/desk/tracks/golden/experts/"
        answer = self._desk().post(page, {"verb": "end", "why": "Enough."})
        assert answer.status_code == 302, answer.content.decode()

    def _desk(self) -> Client:
        client = Client()
        client.force_login(self.admin)
        return client

    def _rightly(self, check: int) -> dict[str, Any]:
        """The form that says the truth about a check."""
        row = model("sampling.ExpertCheck").objects.get(pk=check)
        place = next(place for place, number in self.target.items() if number == row.target_id)
        if chance("expert cannot", _place_key(place)) < 0.05:
            return {"problem": "text"}
        form: dict[str, Any] = {}
        for side, span in (("a", place.a), ("b", place.b)):
            begin, end = self.canonical(place.document, span)
            form[side] = f"{begin}-{end}"
        holds = [one.part for one in self.relations if one.pair == place and one.true]
        return form | ({"holds": holds} if holds else {"none": "1"})


def _person(document: int, sentence: int) -> str:
    return "Anna" if sentence in (0, 3) else f"Carl{document}x{sentence}"


def _place_key(place: Place) -> str:
    return (
        f"{place.kind} {place.document} {place.a[0]:05} {place.a[1]} {place.b[0]:05} {place.b[1]}"
    )


def _relations_of(document: Document) -> list[Relation]:
    """Everything that may be predicted of a document's sentences."""
    found: list[Relation] = []
    words = [sentence.rstrip(".").split(" ") for sentence in document.text.split(". ")]
    for s, (person, _, _, firm, _, town) in enumerate(words):
        begin = document.sentence_begin[s]

        def span(text: str, begin: int = begin) -> Span:
            at = document.text.index(text, begin)
            return at, at + len(text)

        first = document.text.index(person)
        canonical = (first, first + len(person))
        predicted = [
            (person, WORKS, firm),
            (person, FOUNDED, firm),
            (firm, BASED, town),
            (person, LIVES, town),
            (person, BORN, town),
        ]
        for subject, predicate, object_ in predicted:
            key = f"{document.key} {s} {predicate}"
            likely = TRUE[predicate] + (0.15 if document.pk % 3 else -0.2)
            own = canonical if subject == person else span(subject)
            true = chance("true", key) < likely
            found.append(
                Relation(key, document.pk, span(subject), predicate, span(object_), own, true)
            )
    return found
