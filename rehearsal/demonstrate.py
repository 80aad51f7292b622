"""Runs the demo: starts the servers, loads a corpus, creates a track, uploads systems over HTTP,
and has simulated annotators answer.
"""

from __future__ import annotations

import io
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.contrib.auth.hashers import make_password
from django.core.management import call_command
from django.utils.text import slugify

from annotation.models import DocumentOrder
from annotation.platforms import registry
from annotation.quality.warn import set_excluding_signals
from annotation.questions.order import order_documents, plan_documents
from kbpo import embedded
from kbpo.accounts.models import Team, Token, User
from kbpo.accounts.teams import add_member
from kbpo.corpus.models import Corpus
from kbpo.sampling.open_track import Money, close_track, create_track, open_track
from kbpo.scores.bring import Name, store_score_file
from kbpo.submissions.models import Submission
from kbpo.submissions.receive import CannotChange, set_submission_role
from kbpo.tracks.models import Track
from kbpo.tracks.registry import track_class
from rehearsal.newspaper import files
from rehearsal.newspaper.judge import SimulatedJudge
from rehearsal.newspaper.texts import TRUTH, TextStudy, read_studies

PASSWORD = "harbour-wire-demo"
NAME = "Harbour Wire"
"""Name of the demo's own corpus and track."""
ANNOTATORS = 9
ACCURACY = 0.92
"""Probability that a simulated annotator's answer is right"""
SEED = 1
BUDGET = Decimal(2000)
HALF_WIDTH = Decimal("0.130")
"""Needs a seventh of the questions of ±5, so that the demo ends soon"""
RATERS = {"generation": 4, "answers": 2}
"""Number of simulated annotators for each kind of texts; at least two, since some texts are rated
twice
"""
CROWD = "simulated"
"""Login of the first simulated annotator; the login `annotator` is for visitors of the demo."""
RATER = "simulated-rater"
"""Login of the first simulated annotator who rates texts"""
SIMULATED = ("annotators", "raters")
"""Processes of simulated people; they log errors, and at the end a summary"""
MOST_PRINTED = 20
"""Greatest number of their log lines that are printed"""
MARKET = 10
"""Distance of the port of the marketplace of `--platform mturk` from that of the site."""
JUDGE = {"name": "Simulated judge", "version": "1"}
ABOUT = {
    "generation": "The same news, put shortly by systems that write.",
    "answers": "Questions about the same news, and what systems answer.",
}
"""Kind -> description of the demo's track of texts"""
WAITING = ("received", "read", "planned", "confirmed", "judging")
POLL_SECONDS = 1.0
"""Seconds between two checks that all started processes still run"""
LINES_OF_LOG, MOST_OF_LOG = 20, 8_000
"""Number of lines that are printed from the log of an ended process, and of bytes that are read"""
PAUSES = (1, 2, 4, 8, 15, 30)
"""Seconds before retries while the service is busy; all requests can be repeated"""


class DemoFailed(Exception):
    """Raised if the demo cannot continue; the text states the reason and where to look."""


@dataclass(frozen=True)
class Study:
    """A study for the demo: a corpus with its gold standard, and the systems to submit."""

    corpus: Path
    mentions: Path
    gold: Path
    judge: Path
    """The folder with the simulated judge's scores of relations"""
    systems: list[dict[str, str]]
    """Systems, each with team, run, file (a path), description, and name if it differs from
    the run
    """
    read_in_full: int
    design: str = "iid"
    platform: str = "pool"
    annotators: int = ANNOTATORS
    """Number of simulated annotators; 0 leaves all questions to people"""
    for_people: int = 0
    """Number of last systems, and of documents, that no simulated annotator sees"""
    texts: tuple[TextStudy, ...] = ()
    """Additional studies of texts"""


def demo_study(
    directory: Path,
    *,
    design: str = "iid",
    systems: int = 0,
    platform: str = "pool",
    annotators: int = ANNOTATORS,
) -> Study:
    """Return the demo's study with its first systems (0: all). Writes its files if they are
    missing.
    """
    if not (directory / "judge.tsv").exists():
        files.write_files(directory)
    at_pool = platform == "pool" and annotators > 0
    listed = files.read_systems(directory)
    # The first run of every team, then the second: few of them are of several teams, too.
    listed.sort(key=lambda system: int(system["run"].rpartition("_")[2]))
    return Study(
        corpus=directory / "corpus.jsonl",
        mentions=directory / "mentions.tsv",
        gold=directory / "gold.tsv",
        judge=directory,
        systems=[
            system
            | {
                "file": str(directory / "systems" / system["file"]),
                "name": f"run {system['run'].rpartition('_')[2]}",
            }
            for system in listed[: systems or None]
        ],
        read_in_full=files.DOCUMENTS // 3,
        design=design,
        platform=platform,
        annotators=annotators,
        for_people=int(at_pool and systems != 1),
        texts=tuple(read_studies(directory / "texts")) if at_pool else (),
    )


class Demo:
    """One run of a study over HTTP. Every step checks what exists already, so that the
    demo continues where it was interrupted.
    """

    def __init__(self, say: Callable[[str], None], study: Study, *, port: int) -> None:
        self.say = say
        self.study = study
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.market = f"http://127.0.0.1:{port + MARKET}"
        self.directory = Path(settings.VAR) / "demo"
        self._up: dict[str, subprocess.Popen[bytes]] = {}
        self._heard: dict[str, int] = {}
        """Process -> position up to which its log was read"""
        self._score_line = 0

    def prepare(self) -> None:
        """Create corpora, tracks and users in a migrated database."""
        study = self.study
        every = [*study.systems, *(system for texts in study.texts for system in texts.systems)]
        create_users(every, study.annotators, raters=len(self._rater_interfaces()))
        for texts in study.texts:  # the site opens with the newest track's board: the relations'
            self._prepare_texts(texts)
        if not Corpus.objects.filter(name=NAME).exists():
            self.say("Loading the corpus")
            call_command("load_corpus", NAME, study.corpus, schema="tac_kbp", stdout=io.StringIO())
        if not Track.objects.filter(name=NAME).exists():
            self.say(f"Opening a track; {study.read_in_full} documents are read in full")
            fee_rate = registry.platform_fee_rate(study.platform)
            track = create_track(
                Corpus.objects.get(name=NAME),
                NAME,
                money=Money(budget=BUDGET, fee_rate=fee_rate),
                target_half_width=HALF_WIDTH,
                design=study.design,
                platform=study.platform,
            )
            open_track(track)
            switch_off_exclusion(self.track)
            call_command(
                "import_annotations",
                self.track.slug,
                study.gold,
                study.mentions,
                sample=study.read_in_full,
                seed=SEED,
                stdout=io.StringIO(),
            )
            describe_track(self.track, "News of a harbour town: who works, lives and owns what.")

    def _prepare_texts(self, texts: TextStudy) -> None:
        """Load the inputs of a study of texts, and create its track."""
        if not Corpus.objects.filter(name=texts.name).exists():
            call_command("load_corpus", texts.name, texts.inputs, dev_share=0, stdout=io.StringIO())
        if not Track.objects.filter(name=texts.name).exists():
            self.say(f"Opening a track of {track_class(texts.kind).words.items}: {texts.name}")
            track = create_track(
                Corpus.objects.get(name=texts.name),
                texts.name,
                money=Money(budget=BUDGET),
                kind=texts.kind,
                target_half_width=texts.half_width,
                owner=Team.objects.filter(slug=slugify(texts.owner)).first(),
            )
            open_track(track)
            switch_off_exclusion(track)
            describe_track(track, ABOUT[texts.kind])

    @property
    def track(self) -> Track:
        """Return the study's track."""
        return Track.objects.get(name=NAME)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Start the web server and a worker with the clock, and stop them at the end."""
        if not _is_port_free(self.port):
            raise DemoFailed(
                f"Port {self.port} is taken. Stop what listens there (`make stop`"
                " if it is an earlier demo), or say ARGS='--port 8001'."
            )
        names = [name for name in self._commands() if name not in SIMULATED]
        with self._processes(*names) as processes:
            self.web, self._up = processes["web"], processes
            yield

    def check(self) -> None:
        """Print errors of the simulated annotators. Raises DemoFailed with the end of the log of a
        process that stopped.
        """
        self._print_new_lines()
        for name, process in self._up.items():
            code = process.poll()
            if code is not None:
                reason = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
                log = self.directory / "log" / f"{name}.log"
                with log.open("rb") as file:
                    file.seek(max(0, log.stat().st_size - MOST_OF_LOG))
                    lines = file.read().decode("utf-8", "replace").splitlines()
                end = "\n".join(lines[-LINES_OF_LOG:])
                raise DemoFailed(
                    f"The process {name} of the demo ended by itself ({reason}), so all is stopped."
                    f" `make demo` goes on from here. The end of {log}:\n\n{end}"
                )

    def _print_new_lines(self) -> None:
        """Print new lines of the logs of simulated annotators."""
        for name in self._heard.keys() & set(SIMULATED):
            log = self.directory / "log" / f"{name}.log"
            with log.open("rb") as file:
                file.seek(self._heard[name])
                whole = file.read().rpartition(b"\n")[0]
            self._heard[name] += len(whole) + 1 if whole else 0
            for line in whole.decode("utf-8", "replace").splitlines():
                self._score_line += 1
                if self._score_line <= MOST_PRINTED:
                    self.say(f"  {name}: {line}")
                elif self._score_line == MOST_PRINTED + 1:
                    self.say(f"  More of this kind stands in {log}")

    @contextmanager
    def _processes(self, *names: str) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
        processes: dict[str, subprocess.Popen[bytes]] = {}
        try:
            for name in names:
                processes[name] = self._start_process(name, self._commands()[name])
            yield processes
        finally:
            for process in processes.values():
                process.send_signal(signal.SIGTERM)
            for process in processes.values():
                try:
                    process.wait(timeout=15)
                except subprocess.TimeoutExpired:
                    process.kill()

    def watch(self) -> None:
        """Wait until a process ends, and raise DemoFailed."""
        while True:
            self.check()
            time.sleep(POLL_SECONDS)

    def judge_all(self) -> None:
        """Submit the systems and have simulated annotators answer. The last systems are submitted
        afterwards and wait for people, with documents to be annotated.
        """
        systems = self.study.systems
        if not self.study.annotators:
            for system in systems:
                self._submit(system)
            return
        simulated = systems[: len(systems) - self.study.for_people]
        if not self._is_judged(simulated):
            self.say(f"{self.study.annotators} simulated annotators come")
            with self._processes("annotators", *(["raters"] if self.study.texts else [])):
                runs = [self._upload_texts(texts) for texts in self.study.texts]
                for text, uploaded in zip(self.study.texts, runs, strict=True):
                    self._confirm_texts(text, uploaded)
                self.submit_all(simulated)
                for text, uploaded in zip(self.study.texts, runs, strict=True):
                    self._wait_until_scored(uploaded)
                    if not text.owner:  # one track shows what becomes public at the end
                        close_track(Track.objects.get(slug=slugify(text.name)))
        if self.study.for_people:
            self.say("The simulated annotators have left; what follows is for people")
            for system in systems[len(simulated) :]:
                self._submit(system)
            n = self.study.for_people
            if not DocumentOrder.objects.filter(track=self.track).exists():
                order_documents(self.track, n, plan_documents(self.track, n).at_most)

    def _is_judged(self, systems: list[dict[str, str]]) -> bool:
        scored = Submission.objects.filter(track=self.track, status="scored")
        names = set(scored.values_list("team__name", "name"))
        scored_texts = Submission.objects.filter(
            track__name__in=[texts.name for texts in self.study.texts], status="scored"
        ).count()
        if scored_texts < sum(len(texts.systems) for texts in self.study.texts):
            return False
        return all((system["team"], _system_title(system)) in names for system in systems)

    def _submit(self, system: dict[str, str]) -> tuple[str, int, str]:
        """Upload a system as its team and confirm its plan; return team, number and title."""
        token, name = _team_token(system["team"]), _system_title(system)
        submission = self._upload(token, system, name)
        self._score_by_simulated_judge(token, submission)
        title = f"{system['team']} {name}"
        self._confirm(token, submission, title)
        return system["team"], submission, title

    def submit_all(self, systems: list[dict[str, str]]) -> None:
        """Upload each system as its team, confirm its plan, and wait until it is scored."""
        for system in systems:
            self._wait_until_scored([self._submit(system)])

    def _score_by_simulated_judge(self, token: str, submission: int) -> None:
        """Have the simulated judge score a parsed submission through the API."""
        self._wait_until_read(token, submission)
        judge, admin = SimulatedJudge(self.study.judge), _user_token("admin")
        while True:
            unscored = self._call_api(
                admin, f"tracks/{self.track.slug}/unscored/?{urlencode(JUDGE)}"
            )
            if not unscored["results"]:
                return
            scores = judge.scores(unscored["results"])
            said = JUDGE | {"scores": scores, "not_tuned": True}  # it never sees a judgment
            self._call_api(admin, f"tracks/{self.track.slug}/scores/", said)

    def _upload_texts(self, texts: TextStudy) -> list[tuple[str, int, str]]:
        """Upload the outputs of a study's systems, and return team, number and title of each."""
        track = Track.objects.get(name=texts.name)
        submitted = []
        for system in texts.systems:
            token, name = _team_token(system["team"]), _system_title(system)
            pk = self._upload(token, system, name, track)
            submitted.append((system["team"], pk, f"{system['team']} {name}"))
        return submitted

    def _confirm_texts(self, texts: TextStudy, submitted: list[tuple[str, int, str]]) -> None:
        """Upload the judge's scores, and confirm every plan."""
        track = Track.objects.get(name=texts.name)
        for (team, pk, _), system in zip(submitted, texts.systems, strict=True):
            self._wait_until_read(_team_token(team), pk)
            give_role(pk, system["role"])
        judge = Name(JUDGE["name"], JUDGE["version"])
        store_score_file(track, texts.scores, judge, User.objects.get(username="admin"))
        for team, pk, title in submitted:
            self._confirm(_team_token(team), pk, title)

    def _wait_until_scored(self, submitted: Iterable[tuple[str, int, str]]) -> None:
        """Wait until submissions are scored, given by team, number and title."""
        for team, pk, title in submitted:
            token = _team_token(team)
            scored = self._wait_for_status(token, pk, lambda now: now["status"] not in WAITING)
            if scored["status"] != "scored":
                raise DemoFailed(f"{title} ended as {scored['status']}: {scored['reason']}")
            self.say(f"  {title}: {_score_line(scored)}")

    def _confirm(self, token: str, submission: int, title: str) -> None:
        """Confirm the plan of a submission once it is made."""
        planned = self._wait_until_read(token, submission)
        if planned["status"] != "planned":
            return
        width = planned["plan"]["chosen"]
        option = planned["plan"]["options"][width]
        sample = f"{option['targets']} to judge in the sample, at most ${option['at_most']}"
        self.say(f"  {title}: {sample}")
        body = {"half_width": width, "good_lines_only": True}
        self._call_api(token, f"submissions/{submission}/confirm/", body)

    def _upload(
        self, token: str, system: dict[str, str], name: str, track: Track | None = None
    ) -> int:
        track = track or self.track
        own = Submission.objects.filter(track=track, team__name=system["team"], name=name)
        if submission := own.first():
            return submission.pk
        path = Path(system["file"])
        fields = {"track": track.slug, "name": name, "description": system["description"]}
        key = {"Idempotency-Key": f"demo-{path.name}"}
        answer = self._send_request(token, "submissions/", *_encode_multipart(fields, path), key)
        return int(answer["id"])

    def _wait_until_read(self, token: str, submission: int) -> dict[str, Any]:
        return self._wait_for_status(
            token, submission, lambda now: now["status"] not in ("received", "read")
        )

    def _wait_for_status(
        self, token: str, submission: int, ready: Callable[[dict[str, Any]], bool]
    ) -> dict[str, Any]:
        deadline = time.monotonic() + 900
        while time.monotonic() < deadline:
            self.check()
            now = self._call_api(token, f"submissions/{submission}/")
            if ready(now):
                return now
            time.sleep(0.3)
        raise DemoFailed(
            f"Submission {submission} did not move for 15 minutes; see {self.directory / 'log'}."
        )

    def _call_api(
        self, token: str, path: str, body: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        content = None if body is None else json.dumps(body).encode()
        return self._send_request(token, path, content, "application/json", {})

    def _send_request(
        self, token: str, path: str, body: bytes | None, kind: str, headers: dict[str, str]
    ) -> dict[str, Any]:
        request = urllib.request.Request(
            f"{self.url}/api/{path}", data=body, headers=headers | {"Content-Type": kind}
        )
        request.add_header("Authorization", f"Token {token}")
        for pause in (*PAUSES, None):
            try:
                with urllib.request.urlopen(request, timeout=120) as answer:
                    answered: dict[str, Any] = json.load(answer)
                    return answered
            except urllib.error.HTTPError as error:
                if pause is None or error.code != HTTPStatus.SERVICE_UNAVAILABLE:
                    said = error.read().decode(errors="replace")[:500]
                    raise DemoFailed(f"{path} answered {error.code}: {said}") from error
            time.sleep(pause)
        raise AssertionError("the last try ends it")

    def _commands(self) -> dict[str, list[str]]:
        """Return name -> command of the processes of the demo."""
        study, python, manage = self.study, sys.executable, [sys.executable, "manage.py"]
        serve = (
            f"-m gunicorn kbpo.wsgi --preload -b 127.0.0.1:{self.port} --config python:kbpo.serving"
            " --threads 8 --access-logfile /dev/null --workers 1"  # each takes a hundred megabytes
        )
        commands: dict[str, list[str]] = {}
        if study.platform == "mturk":  # first, since the others call it
            market = ["mturk_local", "--port", str(self.port + MARKET), "--store"]
            commands["market"] = [*manage, *market, str(self.directory / "market.sqlite3")]
        commands["web"] = [python, *serve.split()]
        commands["worker"] = [python, "-m", "kbpo.single_worker"]
        options = f"{self.url} --password {PASSWORD} --accuracy {ACCURACY} --seed {SEED}"
        simulate = [*manage, "simulate", *options.split()]
        if study.texts:
            simulate += ["--thinks", str(study.texts[0].inputs.parent / TRUTH)]
        knows = ("rehearsal.newspaper.knows.Knowledge", str(study.mentions), str(study.gold))
        annotators = f"--user {CROWD} --workers {study.annotators}"
        if study.texts:
            annotators += " --kind relation"
        if study.platform == "mturk":
            annotators += f" --market {self.market}"
        kinds = self._rater_interfaces()
        raters = f"--user {RATER} --workers {len(kinds)}"
        return commands | {
            "annotators": [*simulate, "--knows", *knows, *annotators.split()],
            "raters": [*simulate, "--kind", *kinds, *raters.split()],
        }

    def _rater_interfaces(self) -> list[str]:
        """Return the wanted interface of each simulated rater."""
        return [
            track_class(texts.kind).asking[0].interface
            for texts in self.study.texts
            for _ in range(RATERS[texts.kind])
        ]

    def _start_process(self, name: str, command: list[str]) -> subprocess.Popen[bytes]:
        log = self.directory / "log"
        log.mkdir(parents=True, exist_ok=True)
        environment = os.environ | {
            "MALLOC_ARENA_MAX": "2",  # each thread of the worker would keep its memory
            "TICK_SECONDS": "2",  # each takes six thousandths of a second where nothing happens
            "DEBOUNCE_SECONDS": "3",  # as often as a page that is watched looks again
            "FEWEST_PREDICTIONS": "10",  # the corpus of the demo is small
            "SITE_URL": self.url,
        }
        if self.study.platform == "mturk":
            environment |= {
                "MTURK_ENDPOINT_URL": self.market,
                "MTURK_WORKER_SITES": self.market,
                "MTURK_POLL_SECONDS": "1",
                "MTURK_ACCESS_KEY_ID": "demo",
                "MTURK_SECRET_ACCESS_KEY": "demo",
            }
        with (log / f"{name}.log").open("ab") as file:
            self._heard[name] = file.tell()
            process = subprocess.Popen(
                command,
                stdout=file,
                stderr=file,
                cwd=settings.BASE_DIR,
                env=environment,
                start_new_session=True,
            )
        embedded.record_process(Path(settings.VAR), name, process.pid)
        return process

    def wait_for_web(self) -> None:
        """Wait until the site answers. Raises DemoFailed if it does not."""
        deadline = time.monotonic() + 300  # a busy machine takes its time
        while self.web.poll() is None and time.monotonic() < deadline:
            if not _is_port_free(self.port):
                return
            time.sleep(0.1)
        raise DemoFailed(f"The site did not start; see {self.directory / 'log'}.")


def switch_off_exclusion(track: Track) -> None:
    """Switch off automatic exclusion on a track, since simulated annotators err at random and need
    no time to read.
    """
    why = "Programs judge here: they err at random, and need no time to read"
    set_excluding_signals(track, [], None, why, timed=False)


def create_users(
    systems: list[dict[str, str]], simulated: int = ANNOTATORS, *, raters: int = 0
) -> None:
    """Create users with one password: a researcher for each team, an annotator, simulated
    annotators, an admin.
    """
    hashed = cache(lambda: make_password(PASSWORD))

    def create_user(name: str, **roles: bool) -> User:
        defaults = {"email": f"{name}@example.org", "password": hashed, **roles}
        return User.objects.get_or_create(username=name, defaults=defaults)[0]

    for place, name in enumerate(sorted({system["team"] for system in systems})):
        team, _ = Team.objects.get_or_create(name=name, defaults={"slug": slugify(name)})
        user = create_user(
            "researcher" if place == 0 else f"researcher{place + 1}", is_researcher=True
        )
        add_member(team, user)
    create_user("annotator", is_annotator=True)
    for login, number in ((CROWD, simulated), (RATER, raters)):
        for place in range(number):
            create_user(login if place == 0 else f"{login}{place + 1}", is_annotator=True)
    create_user("admin", is_staff=True, is_superuser=True)


def give_role(submission: int, role: str) -> None:
    """Set the role of a submission once no step of the pipeline locks its row."""
    for pause in (*PAUSES, None):
        try:
            set_submission_role(Submission.objects.get(pk=submission), role)
            return
        except CannotChange as refusal:
            if pause is None:
                raise DemoFailed(f"Submission {submission}: {refusal}") from refusal
        time.sleep(pause)


def describe_track(track: Track, what: str) -> None:
    """Set the texts of a track's page."""
    track.description = what
    track.who_pays = (
        "Nobody: the annotators are simulated,"
        " and the dollars are play money, booked like real ones."
    )
    track.save(update_fields=["description", "who_pays"])
    track.corpus.description = "Invented by a program, with everything that is true of them."
    track.corpus.licence = "CC0 1.0"
    track.corpus.save(update_fields=["description", "licence"])


def _system_title(system: dict[str, str]) -> str:
    return system.get("name") or system["run"]


def _team_token(team: str) -> str:
    return _user_token(User.objects.filter(teams__name=team).earliest("pk").username)


def _user_token(username: str) -> str:
    user = User.objects.get(username=username)
    Token.objects.filter(user=user, name="demo").delete()
    return Token.create_with_secret(user, "demo", days=7)[1]


def _score_line(scored: dict[str, Any]) -> str:
    """Return the guaranteed scores of a submission in one line."""
    parts = []
    for quantity in ("f1", "precision", "recall", "mean"):
        for score in scored["scores"]:
            if (score["quantity"], score["method"]) != (quantity, "centred"):
                continue
            if score["value"] is not None:
                columns = ("value", "low80", "high80")
                value, low, high = (Decimal(score[column]) * 100 for column in columns)
                parts.append(f"{quantity} {value:.1f} ({low:.1f}–{high:.1f})")
            break
    return ", ".join(parts) or "scored"


def _encode_multipart(fields: dict[str, str], path: Path) -> tuple[bytes, str]:
    boundary = secrets.token_hex(16)
    parts = [
        f'--{boundary}\r\nContent-Disposition: form-data; name="{k}"\r\n\r\n{v}\r\n'
        for k, v in fields.items()
    ]
    head = (
        f'--{boundary}\r\nContent-Disposition: form-data; name="file";'
        f' filename="{path.name}"\r\n\r\n'
    )
    end = f"\r\n--{boundary}--\r\n"
    body = "".join([*parts, head]).encode() + path.read_bytes() + end.encode()
    return body, f"multipart/form-data; boundary={boundary}"


def _is_port_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(0.5)
        return probe.connect_ex(("127.0.0.1", port)) != 0
