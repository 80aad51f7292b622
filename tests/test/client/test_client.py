"""A researcher with the command line: from the list of tracks to what people found wrong."""

from __future__ import annotations

import json
import os
import socket
import stat
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import click
import kbpo_client
import pandas
import pytest
from click.testing import CliRunner
from kbpo_client import Client, Refused, Unreachable
from kbpo_client.commands import main
from kbpo_client.commands.runs import DISCARDED, ENDED, STATUSES
from kbpo_client.commands.scores import PARTS, SORTS, VERDICTS, comparison_table
from kbpo_client.commands.service import settings_directory, stored_tokens

from kbpo.accounts.models import Token
from kbpo.clock import now
from kbpo.corpus.models import Mention
from kbpo.instances.models import Label
from kbpo.instances.record import NewLabel, record_labels
from kbpo.sampling.models import ExpertCheck, Further
from kbpo.sampling.open_track import close_track
from kbpo.sampling.plan import tick as plan
from kbpo.submissions.ingest import tick as ingest
from kbpo.submissions.models import Submission
from kbpo.tracks.kbp.track import KbpTrack
from kbpo.web.research import explorer
from tests.conftest import Toy
from tests.reports import figures_of, keep
from tests.test.client.conftest import Run, told
from tests.test.web.conftest import GOOD, OTHERS, judged, lines_of
from tests.test.web.scored import judge_all, make_board, make_study

__all__ = ["judged"]

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def file(toy: Toy, tmp_path: Path) -> Path:
    path = tmp_path / "run.jsonl"
    path.write_bytes(lines_of(toy, GOOD))
    return path


def test_the_tracks_are_listed_without_a_token(run: Run, toy: Toy) -> None:
    toy.track.target_half_width = 0.045
    toy.track.save()
    shown = run("tracks", who="").output
    assert "Toy track" in shown and "±4.5 %" in shown
    assert [track["slug"] for track in told(run("tracks", "--json", who=""))] == ["toy"]


def test_what_is_downloaded_reads_a_file_as_the_service_does(
    run: Run, toy: Toy, file: Path, draft: Callable[..., Submission]
) -> None:
    Mention.objects.create(document=toy.documents["d1"], begin=0, end=10, type="PER")
    assert run("download", "toy", who="").exit_code == 0
    bad = [*GOOD, ("d1", "Mara Lindt", "per:shoe_size", "Nordwerk")]
    file.write_bytes(lines_of(toy, bad) + b"{broken\n")
    reading = run("validate", file, "--track", "toy", "--json")
    assert reading.exit_code == 3
    here = json.loads(reading.stdout)
    there = draft(body=file.read_bytes())
    said = there.problems.order_by("line", "pk").values_list("code", "line", "text")
    assert {(m["code"], m["line"], m["text"]) for m in here["messages"]} == set(said)
    assert here["relations"] == there.counts["relations"]
    lines = [message["line"] for message in here["messages"]]
    assert lines == sorted(lines) and len(set(lines)) > 1
    file.write_bytes(b'{"nothing": 1}\n' + 3 * b"no JSON\n")
    shown = run("validate", file, "--track", "toy").output
    assert shown.count("syntax.json") == 1 and "(and 2 more lines)" in shown


def test_a_good_file_is_valid_offline(run: Run, file: Path, live_server: Any) -> None:
    run("download", "toy", who="")
    assert not Path("toy/mentions.jsonl.gz").exists(), "no names came with the texts"
    result = run("validate", file, "--track", "toy")
    assert result.exit_code == 0 and "4 relations, 0 errors" in result.output
    assert "would take it as it is" in result.output


def test_without_the_documents_it_is_said_how_they_are_had(run: Run, file: Path) -> None:
    result = run("validate", file, "--track", "toy")
    assert result.exit_code == 2 and "kbpo download toy" in result.output
    for words in (("validate", "none.jsonl", "--track", "toy"), ("rescore", "none.zip")):
        result = run(*words)
        assert result.exit_code == 2 and "does not exist" in result.stderr


def test_documents_that_may_not_be_downloaded_are_not(run: Run, toy: Toy) -> None:
    toy.corpus.may_be_downloaded = False
    toy.corpus.save()
    result = run("download", "toy", who="")
    assert result.exit_code == 1 and "ask the organisers" in result.output
    assert not list(Path("toy").glob("documents*"))


def test_an_upload_is_planned_confirmed_and_watched(run: Run, file: Path, toy: Toy) -> None:
    submission = told(run("submit", "toy", file, "--name", "run 1", "--json"))
    again = told(run("submit", "toy", file, "--name", "run 1", "--json"))
    assert again["id"] == submission["id"], "a repeat makes no second submission"
    ingest()
    plan()
    watched = run("status", submission["id"], "--watch")
    assert watched.exit_code == 0 and "kbpo confirm" in watched.output
    assert watched.stderr == "Waiting for you\n", "what is read whole is told once"
    assert "new questions, about $" in watched.output
    assert run("confirm", submission["id"], input="n\n").exit_code == 1
    assert Submission.objects.get().status == "planned"
    price = Submission.objects.get().plan["options"]["0.050"]["at_most"]
    asked = run("confirm", submission["id"], "--half-width", "0.05", input="n\n")
    assert f"Begin the judging, at most ${price}?" in asked.output
    dear = run("confirm", submission["id"], "--half-width", "0.05", "--yes", "--at-most", "0.01")
    assert dear.exit_code == 1 and "$0.01 was said" in dear.output
    assert Submission.objects.get().status == "planned"
    confirmed = run("confirm", submission["id"], "--half-width", "0.05", input="y\n")
    assert confirmed.exit_code == 0 and "reserved" in confirmed.output
    assert Submission.objects.get().status == "confirmed"


def test_the_same_file_again_is_refused_with_the_sentence_of_the_service(
    run: Run, file: Path
) -> None:
    run("submit", "toy", file, "--name", "run 1")
    refused = run("submit", "toy", file, "--name", "run 2")
    assert refused.exit_code == 1 and "Say --again if you mean it." in refused.stderr
    elsewhere = run("submit", "nope", file, "--name", "run 1")
    assert elsewhere.exit_code == 1 and "There is no track “nope”." in elsewhere.stderr
    assert run("submit", "toy", file, "--name", "run 2", "--again").exit_code == 0


def test_scores_and_a_comparison_stand_as_on_the_board(run: Run, toy: Toy) -> None:
    evaluation = make_board(toy, 3)
    numbers = sorted({key.submission for key in figures_of(evaluation)})
    scores = run("scores", "toy", who="")
    assert scores.exit_code == 0 and "53.3 (51.3–55.3)" in scores.output
    part, figure = next(iter(figures_of(evaluation, method="centred").items()))
    figures = figures_of(evaluation)
    keep(evaluation, figures | {part._replace(slice="relation:per:parents"): figure})
    Submission.objects.get(pk=part.submission).team.members.add(toy.users["Rosa"])
    [sliced] = told(run("slices", part.submission, "--json"))
    head, line = run("slices", part.submission).output.splitlines()
    assert head.split() == ["slice", "figure", "80", "%", "predictions"]
    assert line.startswith(f"relation:per:parents  {part.quantity}, {part.criterion}, ")
    assert f"{100 * sliced['value']:.1f} (" in line
    compared = told(run("compare", "toy", numbers[0], numbers[1], "--json", who=""))
    assert {compared["a"]["submission"], compared["b"]["submission"]} == set(numbers[:2])
    page = run("compare", "toy", numbers[0], numbers[1], who="").output
    assert page == "Differences are shown once the track is closed.\n"
    same = run("compare", "toy", numbers[0], numbers[0], who="")
    assert same.exit_code == 1 and "Both are the same system" in same.output
    wrong = run("compare", "toy", numbers[0], 999999, who="")
    assert wrong.exit_code == 1 and "not on this board" in wrong.output


def test_a_comparison_says_which_system_is_higher_by_its_team_and_name() -> None:
    def difference(quantity: str, low: float, high: float) -> dict[str, Any]:
        score = {"value": 0.3, "low80": 0.28, "high80": 0.32}
        middle = (low + high) / 2
        ends = {"difference": middle, "low80": low, "high80": high}
        return {"quantity": quantity, "label": quantity.upper(), "a": score, "b": score, **ends}

    compared = {
        "a": {"team": "Harbor", "name": "run 1"},
        "b": {"team": "Quarry", "name": "run 2"},
        "differences": [
            difference("f1", -0.02, 0.04),
            difference("precision", -0.157, -0.092),
            difference("recall", 0.059, 0.127),
        ],
    }
    head, lines = comparison_table(compared)
    assert head[2:4] == ["Harbor run 1", "Quarry run 2"]
    assert [line[1] for line in lines] == [
        "no difference shown",
        "Quarry run 2 is higher",
        "Harbor run 1 is higher",
    ]
    assert lines[1][2:] == ["30.0 (28.0–32.0)"] * 2 + ["-12.4 (-15.7 to -9.2)"]


def test_errors_are_told_to_all_once_the_track_is_closed(
    run: Run, toy: Toy, draft: Callable[..., Submission]
) -> None:
    submission = draft(OTHERS)
    judge_all(submission)
    Submission.objects.update(status="scored")
    for who in ("Rosa", "Tim"):
        hidden = run("errors", submission.pk, "--verdict", "all", "--json", who=who)
        assert told(hidden) == [], "judgments are hidden while the track is open"
    close_track(toy.track)
    judged = told(run("errors", submission.pk, "--verdict", "all", "--json"))
    assert len(judged) == len(OTHERS)
    first = judged[0]
    assert first["document"] == "d1" and first["subject"] == list(toy.span("d1", "Mara Lindt"))
    assert first["relation_right"] is True
    lindt = ("errors", submission.pk, "--verdict", "all", "--entity", "mara lindt", "--json")
    assert [one["prediction"] for one in told(run(*lindt))] == [
        one["prediction"] for one in judged if "Mara Lindt" in one["claim"]
    ]
    assert told(run("errors", submission.pk, "--json")) == []
    pair = Label.objects.get(target__instances__predictions=first["prediction"])
    nothing = pair.value | {"holds": [], "votes": {}}
    record_labels([NewLabel(pair.target_id, nothing, "expert", "majority", 1, "again")])
    [wrong] = told(run("errors", submission.pk, "--json"))
    assert wrong["prediction"] == first["prediction"] and wrong["relation_right"] is False
    assert wrong["right"] is None, "nobody was asked of its names"
    shown = run("errors", submission.pk).output
    assert shown.startswith(f"{wrong['prediction']}  d1  ") and "✗ relation" in shown
    for who in ("Tim", ""):
        public = told(run("errors", submission.pk, "--verdict", "all", "--json", who=who))
        assert [one["prediction"] for one in public] == [one["prediction"] for one in judged]


@pytest.mark.parametrize("status", sorted(ENDED))
def test_a_watch_says_by_its_exit_code_that_a_run_ended_without_a_score(
    run: Run, draft: Callable[..., Submission], status: str
) -> None:
    row = draft()
    assert run("status", row.pk, "--watch").exit_code == 0, "it waits for its owner"
    row.move(status, "So it is.")
    watched = run("status", row.pk, "--watch", "--json")
    assert watched.exit_code == 1 and json.loads(watched.stdout)["status"] == status
    assert run("status", row.pk).exit_code == 0, "whoever asks once is answered"
    refused = run("confirm", row.pk)
    assert refused.exit_code == 1 and refused.output == (
        f"{row.name} ({row.get_status_display()}) cannot be confirmed:"
        " only a run that waits for you can be. So it is.\n"
    )


class Flaky(BaseHTTPRequestHandler):
    """A service that answers as it is told: with where a run is, with a status, or not at all."""

    says: ClassVar[list[str | int | None]] = []

    def do_GET(self) -> None:
        said = self.says.pop(0)
        if said is None:
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        self.send_response(said if isinstance(said, int) else 200)
        self.end_headers()
        self.wfile.write(b"<p>Bad gateway" if isinstance(said, int) else _run_in(said))

    def log_message(self, *_: Any) -> None:
        pass


def _run_in(status: str) -> bytes:
    return json.dumps({"status": status}).encode()


@pytest.fixture
def flaky() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Flaky)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_a_watch_outlasts_a_service_that_is_away_for_a_while(flaky: str) -> None:
    Flaky.says[:] = ["judging", None, 502, "judging", 503, "scored"]
    heard: list[str] = []
    with Client(flaky) as client:
        done = client.wait(1, seconds=0.01, tell_trouble=heard.append)
    assert done["status"] == "scored" and not Flaky.says
    assert len(heard) == 3 and "does not answer" in heard[0] and "502" in heard[1]
    assert all("asked again" in sentence for sentence in heard)


def test_every_command_can_say_it_in_json(run: Run, toy: Toy) -> None:
    lacking = [
        name
        for name, command in main.commands.items()
        if not any(one.name == "as_json" for one in command.params)
    ]
    assert lacking == []
    secret = Token.create_with_secret(toy.users["Rosa"], "laptop")[1]
    kept = told(run("login", "--token", secret, "--json", who=""))
    assert Path(kept["kept_in"]).exists() and kept["url"].startswith("http")
    files = told(run("download", "toy", "--json", who=""))
    assert {"documents", "schema"} <= set(files)
    assert all(Path(file).exists() for file in files.values())


def test_what_is_said_of_a_run_is_changed(
    run: Run, toy: Toy, draft: Callable[..., Submission]
) -> None:
    mine = draft(OTHERS, name="mine")
    assert told(run("edit", mine.pk, "--anonymous", "--json"))["anonymous"] is True
    changed = run("edit", mine.pk, "--name", "ours", "--paper", "https://example.org/p", "--named")
    assert changed.output == "ours: changed.\n"
    mine.refresh_from_db()
    assert (mine.name, mine.is_anonymous, mine.description) == ("ours", False, "")
    assert told(run("edit", mine.pk, "--description", "", "--json"))["name"] == "ours"
    nothing = run("edit", mine.pk)
    assert nothing.exit_code == 2 and "What is to change? Give one of --name, " in nothing.stderr
    assert run("edit", mine.pk, "--name", "his", who="Tim").exit_code == 1


def test_python_does_what_the_api_does(
    live_server: Any, toy: Toy, draft: Callable[..., Submission]
) -> None:
    make_study(toy.track, toy.teams["Patterns"])
    judge_all(draft(OTHERS))
    Submission.objects.update(status="scored")
    make_board(toy, 3)
    row = Submission.objects.get(name="run 0")
    row.team.members.add(toy.users["Rosa"])
    token = Token.create_with_secret(toy.users["Rosa"], "python")[1]
    with Client(live_server.url, token, frames=False) as client:
        assert client.slices(row.pk) == []
        bad = draft(OTHERS, name="bad")
        bad.move("failed", "The disk was full.")
        assert client.retry(bad.pk)["status"] != "failed"
        with pytest.raises(Refused, match="has not failed"):
            client.retry(bad.pk)
        Submission.objects.filter(pk=bad.pk).update(status="refused")
        client.delete(bad.pk)
        with pytest.raises(Refused, match=f"There is no run {bad.pk}"):
            client.submission(bad.pk)
        with pytest.raises(Refused, match="is withdrawn, not deleted"):
            client.delete(row.pk)


def test_a_judgment_is_disputed_and_more_are_ordered_from_a_shell(
    run: Run, toy: Toy, judged: Submission, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_study(toy.track, judged.team)
    first = told(run("errors", judged.pk, "--verdict", "all", "--json"))[0]["prediction"]
    words = ("dispute", judged.pk, first, "--note", "The text says the opposite.")
    assert run(*words).output == "An expert is asked.\n"
    again = run(*words)
    assert again.exit_code == 1 and "already" in again.output
    assert run("dispute", judged.pk, first).exit_code == 2, "nobody says what is wrong"
    assert ExpertCheck.objects.get(kind="dispute").note == "The text says the opposite."
    unknown = run("order", judged.pk, "--half-width", "0.02", input="y\n")
    assert unknown.exit_code == 1 and "?" not in unknown.output, "nobody knows the price"
    each: dict[str, Any] = {"each": "0.15", "judged": 0, "work_seconds": 60.0}
    steps = {
        "0.020": each | {"at_most": "1.20", "new": 8, "targets": 8},
        "0.010": each | {"at_most": "4.80", "new": 32, "targets": 32},
    }
    plan = {"options": steps}
    judged.status, judged.plan = "scored", {"chosen": "0.030", "options": {}}
    judged.save()
    Further.objects.update_or_create(
        submission=judged,
        defaults={"order": 1, "status": "made", "plan": plan, "made_at": now()},
    )
    kept = run("order", judged.pk, "--half-width", "0.02", input="n\n")
    assert kept.exit_code == 1 and "up to ±0.02, at most $1.20?" in kept.stderr
    for width in ("0.0000001", "5", "much"):
        refused = run("order", judged.pk, "--half-width", width, input="y\n")
        assert refused.exit_code == 1 and "?" not in refused.output
        assert "choose one of 0.020 (at most $1.20), 0.010" in refused.stderr
    words = ("order", judged.pk, "--half-width", "0.02")
    capped = run(*words, "--at-most", "1.19", "--yes")
    assert capped.exit_code == 1 and "at most $1.20, where $1.19 was said" in capped.stderr
    with monkeypatch.context() as patch:
        patch.setattr(click, "confirm", lambda *_, **__: Further.objects.update(made_at=now()))
        dearer = run(*words)
    assert dearer.exit_code == 1 and "computed again since you looked" in dearer.stderr
    assert "reserved" in run(*words, input="y\n").output
    ordered = run("order", judged.pk, "--half-width", "0.999", "--yes")
    assert ordered.exit_code == 1 and ordered.output.endswith(".\n"), ordered.output


def test_only_its_team_retries_and_withdraws_a_run(
    run: Run, toy: Toy, draft: Callable[..., Submission]
) -> None:
    submission = draft(GOOD, name="mine")
    submission.move("failed", "The disk was full.")
    assert run("retry", submission.pk, who="Tim").exit_code == 1
    assert "mine: " in run("retry", submission.pk).output
    refused = run("retry", submission.pk)
    assert refused.exit_code == 1 and "has not failed" in refused.output
    assert run("withdraw", submission.pk, input="n\n").exit_code == 1
    assert told(run("withdraw", submission.pk, "--yes", "--json"))["status"] == "withdrawn"
    for words in (("confirm",), ("withdraw",), ("order", "--half-width", "0.02")):
        late = run(words[0], submission.pk, *words[1:], input="y\n")
        assert late.exit_code == 1 and "?" not in late.output and late.stderr.endswith(".\n")
    assert run("withdraw", submission.pk, "--yes", who="Tim").exit_code == 1


def test_a_token_is_tried_kept_and_nobody_else_may_read_it(run: Run, toy: Toy) -> None:
    secret = Token.create_with_secret(toy.users["Rosa"], "laptop")[1]
    piped = run("login", who="", input=f"{secret}\n")
    assert piped.exit_code == 0 and piped.output.startswith("Kept in "), "nobody is asked"
    assert run("login", who="", input="").exit_code == 2
    kept = settings_directory() / "tokens.json"
    assert stat.S_IMODE(os.stat(kept).st_mode) == 0o600
    assert secret in stored_tokens().values()
    refused = run("login", who="", input="kbpo_wrong\n")
    assert refused.exit_code == 1 and "no such token" in refused.output


def test_a_service_that_is_not_there_is_told_so() -> None:
    with Client("http://127.0.0.1:9", timeout=2) as client, pytest.raises(Unreachable):
        client.tracks()
    result = CliRunner().invoke(main, ["--url", "http://127.0.0.1:9", "tracks"])
    assert result.exit_code == 4 and "does not answer" in result.output


def test_the_runs_of_ones_teams_are_listed_with_their_numbers(
    run: Run, draft: Callable[..., Submission]
) -> None:
    row = draft()
    listed = run("runs")
    assert listed.exit_code == 0 and row.name in listed.output and str(row.pk) in listed.output
    assert [one["id"] for one in told(run("runs", "--status", "planned", "--json"))] == [row.pk]
    assert told(run("runs", "--status", "scored", "--json")) == []
    assert run("runs", who="Tim").output == "Your teams have no run yet.\n"
    wrong = run("runs", "--track", "none")
    assert wrong.exit_code == 1 and "track" in wrong.output


def test_values_of_options_are_those_of_the_service() -> None:
    assert set(STATUSES) == set(Submission.Status.values) and set(DISCARDED) < set(STATUSES)
    assert set(VERDICTS) == {"all", *explorer.VERDICTS}
    assert set(PARTS) == {explorer.ANY, *KbpTrack.words.parts}
    assert set(SORTS) == {*explorer.SORTS, "most"}


def test_whoever_looks_at_a_run_of_others_is_told_what_its_page_tells(run: Run, toy: Toy) -> None:
    make_board(toy, 2)
    number = Submission.objects.get(name="run 1").pk
    for who in ("Tim", ""):
        told = run("status", number, "--long", who=who)
        assert told.exit_code == 0 and "run 1 (toy): Scored" in told.output
        assert "F1         45.0 (43.0–47.0)" in told.output
        assert "It is of Team 1. `kbpo scores toy` is the board." in told.output
    Submission.objects.filter(pk=number).update(is_anonymous=True)
    assert "It is anonymous. `kbpo scores toy`" in run("status", number, who="Tim").output
    Submission.objects.filter(pk=number).update(is_anonymous=False)
    for words in (("withdraw",), ("order", "--half-width", "0.02")):
        refused = run(words[0], number, *words[1:], who="Tim")
        assert refused.exit_code == 1
        assert "Team 1 run 1 is not a run of your teams." in refused.stderr


def test_a_refusal_carries_the_words_of_the_service(live_server: Any, toy: Toy) -> None:
    with Client(live_server.url) as client, pytest.raises(Refused) as refusal:
        client.submissions()
    assert refusal.value.status == 401 and "This needs a token" in str(refusal.value)


def test_tables_are_data_frames_where_pandas_is(
    live_server: Any, toy: Toy, draft: Callable[..., Submission], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_study(toy.track, toy.teams["Patterns"])
    judge_all(draft(OTHERS))
    Submission.objects.update(status="scored")
    evaluation = make_board(toy, 3)
    row = Submission.objects.filter(team=toy.teams["Patterns"]).order_by("pk")[0]
    token = Token.create_with_secret(toy.users["Rosa"], "frames")[1]
    with Client(live_server.url, token) as client:
        scores = client.scores("toy")
        assert isinstance(scores, pandas.DataFrame) and len(scores) == 3
        assert scores["f1_low80"].le(scores["f1_value"]).all()
        assert set(scores["submission"]) <= {key.submission for key in figures_of(evaluation)}
        assert row.pk in set(client.submissions()["id"])
        assert list(client.tracks()["slug"]) == ["toy"]
        judged = client.judgments(row.pk)
        assert len(judged) == len(OTHERS) and set(judged["document"]) == {"d1", "d2", "d3", "d4"}
        assert len(client.errors(row.pk)) == list(judged["right"]).count(False)
        nothing = client.judgments(row.pk, q="xyzzy")
        assert len(nothing) == 0 and len(client.submissions(status="expired")) == 0
    monkeypatch.setattr(kbpo_client.client, "pandas", None)
    with Client(live_server.url, token) as client:
        lists = client.scores("toy")
        assert isinstance(lists, list)
        assert [system["submission"] for system in lists] == list(scores["submission"])
        assert [claim["claim"] for claim in client.judgments(row.pk)] == list(judged["claim"])
