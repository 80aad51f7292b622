"""A confirmed submission with samples of a toy track, and annotators who are logged in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pytest
from annotation_world import ToyTrack, has_learned, make_submission, make_target
from django.db.models.signals import post_save
from django.test import Client
from mturk_world import TOO_LATE, Turk

from annotation.hits import publish
from annotation.models import Worker
from annotation.questions import ask
from annotation.workers import consent
from annotation.workers.worker import worker_of_user
from kbpo.accounts.models import User
from kbpo.corpus.models import Corpus, Predicate
from kbpo.instances.models import Target
from kbpo.money.models import Price
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from rehearsal.mturk.app import serve_endpoint


@pytest.fixture
def toy_kind(monkeypatch: pytest.MonkeyPatch) -> type[ToyTrack]:
    monkeypatch.setattr("annotation.questions.ask.kind_of", ToyTrack)
    return ToyTrack


@pytest.fixture
def track(db: None, toy_kind: type[ToyTrack]) -> Track:
    corpus = Corpus.objects.create(name="Toy news", slug="toy-news", schema={})
    Predicate.objects.create(corpus=corpus, name="per:schools_attended", position=0)
    track = Track.objects.create(corpus=corpus, name="Toy", slug="toy", status="open", design="iid")
    Price.objects.create(
        track=track, interface="relation", reward=Decimal("0.05"), fee_rate=Decimal("0.2")
    )
    return track


@pytest.fixture
def targets(track: Track) -> list[Target]:
    """Six pairs; their random numbers are not in the order of their ids."""
    return [
        make_target(track, number, u)
        for number, u in enumerate([0.6, 0.1, 0.9, 0.3, 0.2, 0.7], start=1)
    ]


@pytest.fixture
def submission(track: Track, targets: list[Target]) -> Submission:
    return make_submission(track, targets)


@pytest.fixture
def two_published(track: Track, targets: list[Target]) -> Submission:
    """A submission with two questions, open in the pool."""
    submission = make_submission(track, targets[:2], "Small")
    ask.tick()
    publish.tick()
    return submission


@pytest.fixture
def published(submission: Submission) -> Submission:
    """The submission with all its questions open in the pool."""
    ask.tick()
    publish.tick()
    return submission


@pytest.fixture
def annotator(db: None) -> Callable[[str], User]:
    def make(name: str) -> User:
        return User.objects.create_user(name, password="long enough 1", is_annotator=True)

    return make


@pytest.fixture
def untaught() -> None:
    """Annotators of the test have read no terms and done no tutorial; without this they have, when
    they are made.
    """


@pytest.fixture(autouse=True)
def taught(request: pytest.FixtureRequest) -> Iterator[None]:
    """Whoever becomes an annotator has agreed to the terms and passed the tutorials, unless a test
    is about that; of a marketplace's workers the tutorial is not asked (see the fixture turk).
    """
    if "untaught" in request.fixturenames:
        yield
        return

    def teach(sender: type[User], instance: User, created: bool, **_: object) -> None:
        if created and instance.is_annotator:
            has_learned(worker_of_user(instance))

    def agree(sender: type[Worker], instance: Worker, created: bool, **_: object) -> None:
        if created and instance.platform == "mturk":
            consent.store_consent(instance, consent.current_terms().version)

    post_save.connect(teach, sender=User)
    post_save.connect(agree, sender=Worker)
    yield
    post_save.disconnect(teach, sender=User)
    post_save.disconnect(agree, sender=Worker)


@pytest.fixture
def ada(annotator: Callable[[str], User], client: Client) -> Client:
    client.force_login(annotator("ada"))
    return client


@pytest.fixture
def clients(annotator: Callable[[str], User]) -> list[Client]:
    """Ada, Bo and Cy, logged in."""
    made = []
    for name in ("ada", "bo", "cy"):
        client = Client()
        client.force_login(annotator(name))
        made.append(client)
    return made


@pytest.fixture
def in_stages() -> None:
    """Two people are asked first, and a third where they differ. Without this all three are asked
    at once: most tests are about what becomes of three answers.
    """


@pytest.fixture(autouse=True)
def at_once(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "in_stages" not in request.fixturenames:
        monkeypatch.setattr(ask, "THREE", 0)


@pytest.fixture(autouse=True)
def only_these_pages(settings: Any) -> None:
    settings.ROOT_URLCONF = "annotation_urls"


@pytest.fixture(scope="session")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Turk]:
    """The local endpoint, served over HTTP."""
    with serve_endpoint(tmp_path_factory.mktemp("mturk") / "books.sqlite3") as (url, store):
        yield Turk(url, store)


def patience(request: pytest.FixtureRequest) -> Decimal:
    """Seconds that we wait for the endpoint: few where an answer is to come too late, else so many
    that no busy machine is taken for a fault of the platform's.
    """
    told = getattr(request.node, "callspec", None)
    return TOO_LATE if told is not None and told.params.get("kind") == "timeout" else Decimal("60")


@pytest.fixture
def market(endpoint: Turk, settings: Any, request: pytest.FixtureRequest) -> Turk:
    """The endpoint with empty books."""
    endpoint.wipe()
    settings.MTURK_ENDPOINT_URL = endpoint.url
    settings.MTURK_ACCESS_KEY_ID = settings.MTURK_SECRET_ACCESS_KEY = "toy"
    settings.MTURK_WORKER_SITES = [endpoint.url]
    settings.MTURK_TIMEOUT = patience(request)
    settings.MTURK_POLL_SECONDS = Decimal("0")
    settings.MTURK_TUTORIAL = "untaught" in request.fixturenames
    return endpoint


@pytest.fixture
def turk(market: Turk, track: Track) -> Turk:
    """The endpoint with empty books, and the toy track on it."""
    Track.objects.filter(pk=track.pk).update(platform="mturk")
    track.refresh_from_db()
    return market


@pytest.fixture
def up(turk: Turk, track: Track, targets: list[Target]) -> Submission:
    """A submission with six questions, each on a document of its own, up on the endpoint."""
    submission = make_submission(track, targets)
    ask.tick()
    publish.tick()
    return submission


@pytest.fixture
def asked(turk: Turk, track: Track, targets: list[Target]) -> Submission:
    """Six questions that nobody has published yet."""
    submission = make_submission(track, targets)
    ask.tick()
    return submission


@pytest.fixture
def admin(db: None) -> User:
    return User.objects.create_user("root", password="long enough 1", is_staff=True)
