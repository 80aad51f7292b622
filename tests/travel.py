"""A track of its own on the running service, and the journeys of its submissions, driven from
outside over HTTP.
"""

from __future__ import annotations

import http.client
import json
import secrets
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any
from zlib import crc32

from certain import number_from
from django.contrib.auth.hashers import MD5PasswordHasher
from django.utils.text import slugify
from processes import PATIENCE, Service, wait_for

from annotation.quality.warn import set_excluding_signals
from kbpo.accounts.models import Team, Token, User
from kbpo.corpus.load import find_schema, load_corpus
from kbpo.corpus.models import Corpus
from kbpo.sampling.documents.draw import draw_documents
from kbpo.sampling.documents.import_annotations import import_annotations
from kbpo.sampling.open_track import Money, create_track, open_track
from rehearsal.annotators import Crowd, Work
from rehearsal.newspaper import files
from rehearsal.newspaper.knows import Knowledge

PASSWORD = "harbour-wire-travels"
ANNOTATORS = 5
JUDGING = 7200.0
"""Seconds that a crowd works at most"""
WAITING = ("received", "read", "planned", "confirmed", "judging")


@dataclass
class Travel:
    """A track with its corpus, its team and its crowd, and what travelled on it."""

    service: Service
    files: Path
    track: str
    tokens: dict[str, str]
    """run -> API token of a researcher of the team"""
    submissions: dict[int, str] = field(default_factory=dict)
    """number -> run"""
    work: Work = field(default_factory=Work)
    patience: float = PATIENCE
    """Seconds that a submission may take from one status to the next"""

    def call(
        self, path: str, run: str = "", body: Any = None, headers: dict[str, str] | None = None
    ) -> dict[str, Any]:
        """What the API answers, asked again while nobody answers, or who does is too busy. Raises
        urllib's HTTPError for a refusal.
        """
        return self._answered(self._request(path, run, body, headers or {}))

    def _request(
        self, path: str, run: str, body: Any, headers: dict[str, str]
    ) -> urllib.request.Request:
        content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.service.url}/api/{path}", content)
        said = {"Content-Type": "application/json"} | headers
        said |= {"Authorization": f"Token {self.tokens[run]}"} if run else {}
        for name, value in said.items():
            request.add_header(name, value)
        return request

    def _answered(self, request: urllib.request.Request) -> dict[str, Any]:
        found: dict[str, Any] = wait_for(
            lambda: _answer(request), f"an answer to {request.selector}", every=0.2
        )
        return found

    def page(self, path: str) -> str:
        """A public page."""
        with urllib.request.urlopen(f"{self.service.url}{path}", timeout=60) as answer:
            return str(answer.read().decode())

    def upload(self, run: str) -> int:
        """The number of the submission of a system's file; a repeat gives the same number."""
        pk = int(self._answered(self.upload_request(run))["id"])
        self.submissions[pk] = run
        return pk

    def upload_request(self, run: str) -> urllib.request.Request:
        """What is sent to upload a system's file."""
        path = self.files / "systems" / f"{run}.kb.tsv"
        boundary = secrets.token_hex(16)
        fields = {"track": self.track, "name": run}
        parts = [
            f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
            for name, value in fields.items()
        ]
        head = (
            f'--{boundary}\r\nContent-Disposition: form-data; name="file";'
            f' filename="{path.name}"\r\n\r\n'
        )
        body = (
            ("".join(parts) + head).encode()
            + path.read_bytes()
            + f"\r\n--{boundary}--\r\n".encode()
        )
        kind = {
            "Content-Type": f"multipart/form-data; boundary={boundary}",
            "Idempotency-Key": f"{self.track}-{run}",
        }
        return self._request("submissions/", run, body, kind)

    def confirm(self, pk: int) -> dict[str, Any]:
        """The submission, confirmed as planned."""
        return self.call(
            f"submissions/{pk}/confirm/", self.submissions[pk], {"good_lines_only": True}
        )

    def told(self, pk: int) -> dict[str, Any]:
        """What the API tells a submission's own team."""
        return self.call(f"submissions/{pk}/", self.submissions[pk])

    def follow(self, pk: int, status: str) -> dict[str, Any]:
        """The submission once it has reached a status; fails if it ends anywhere else."""

        def reached() -> dict[str, Any] | None:
            now = self.told(pk)
            assert now["status"] in (
                status,
                *WAITING,
            ), f"{now['name']} ended as {now['status']}: {now['reason']}"
            return now if now["status"] == status else None

        what = f"submission {pk} to be {status}"
        found: dict[str, Any] = wait_for(reached, what, patience=self.patience, every=0.2)
        return found

    def travel(self, run: str) -> dict[str, Any]:
        """The whole journey of a system's file; somebody must be judging meanwhile."""
        pk = self.upload(run)
        self.follow(pk, "planned")
        self.confirm(pk)
        return self.follow(pk, "scored")

    @contextmanager
    def judging(self, mention_recall: float = 1.0, *others: str) -> Iterator[Work]:
        """Annotators at work on the pages, who find this share of a document's mentions and are
        perfect otherwise.

        `others` go on with what they have in hand.
        """
        knowledge = Knowledge(self.files / "mentions.tsv", self.files / "gold.tsv")
        names = [*others, *(f"annotator{number}" for number in range(1, ANNOTATORS + 1))]
        logins = [(name, PASSWORD) for name in names]
        crowd = Crowd(
            self.service.url,
            logins,
            knowledge.true_answer,
            finds=knowledge.mentions_of,
            mention_recall=mention_recall,
        )
        stop = threading.Event()
        crowd.work_done = self.work
        thread = threading.Thread(
            target=crowd.work,
            args=(stop.is_set,),
            kwargs={"poll": 0.4, "at_most": JUDGING},
            daemon=True,
        )
        thread.start()
        try:
            yield self.work
        finally:
            stop.set()
            thread.join(timeout=60)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a query; %s in it is the track's slug."""
        return self.service.fetch(sql, *[self.track] * sql.count("%s"))


def _answer(request: urllib.request.Request) -> dict[str, Any] | None:
    """The answer; None where nobody answers: the server is away, or died over it."""
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            found: dict[str, Any] = json.load(answer)
            return found
    except urllib.error.HTTPError as refusal:
        if refusal.code != 503:  # too busy just now
            raise
        return None
    except (OSError, http.client.HTTPException):
        return None


def make_travel(
    service: Service,
    directory: Path,
    name: str,
    *,
    seed: int,
    documents: int = 12,
    read_in_full: int = 4,
    design: str = "iid",
    half_width: str = "0.100",
    is_shared: bool = False,
) -> Travel:
    """An open study on a corpus of its own, some documents of which are annotated whole. One team
    owns it and uploads all runs, so nothing is hidden from it. If shared, it is an open track with
    a development part, and each system is uploaded by its own team.

    Its draws are those of every other run: they follow from its secrets and from primary keys.
    """
    files.write_files(directory, documents=documents, with_dev=is_shared)
    with service.speaking():
        number_from(
            crc32(name.encode()) % 1_000 * 10_000
        )  # whatever travelled on this service before
        corpus = load_corpus(name, directory / "corpus.jsonl", find_schema("tac_kbp"))
        Corpus.objects.filter(pk=corpus.pk).update(hash_key=f"corpus {name}")
        corpus.refresh_from_db()
        systems = files.read_systems(directory)
        owner = None
        if is_shared:
            names = {system["team"] for system in systems}
            tokens = {team: _team(f"{team} {name}")[1] for team in names}
        else:
            owner, token = _team(name)
            tokens = {system["team"]: token for system in systems}
        track = open_track(
            create_track(
                corpus,
                name,
                money=Money(budget=Decimal(500)),
                design=design,
                target_half_width=Decimal(half_width),
                is_study=not is_shared,
                owner=owner,
            )
        )
        track.secret = f"track {name}"
        track.save(update_fields=["secret"])
        set_excluding_signals(track, ["majority", "gold"], None, "Programs need no time to read")
        if read_in_full:
            drawn = draw_documents(track, read_in_full, seed)
            import_annotations(
                track, directory / "gold.tsv", directory / "mentions.tsv", drawn, seed=seed
            )
        for number in range(1, ANNOTATORS + 1):
            _person(f"annotator{number}", is_annotator=True)
        of_runs = {system["run"]: tokens[system["team"]] for system in systems}
        return Travel(service, directory, track.slug, of_runs)


def _team(name: str) -> tuple[Team, str]:
    """Return a new team and the API token of its one researcher."""
    researcher = _person(slugify(f"{name} team"), is_researcher=True)
    team = Team.objects.create(name=name, slug=slugify(name))
    team.members.add(researcher)
    return team, Token.create_with_secret(researcher, "travel")[1]


def _person(name: str, **roles: bool) -> User:
    password = MD5PasswordHasher().encode(PASSWORD, "seasalt")
    return User.objects.get_or_create(username=name, defaults={"password": password, **roles})[0]
