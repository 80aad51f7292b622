"""A study that was done elsewhere is scored here without asking anybody; and taken out again."""

from __future__ import annotations

import io
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation.models import HIT, Assignment, Question, Response, Worker
from annotation.questions.ask import imported_answer, imported_questions
from formats.messages import Report
from kbpo import clock
from kbpo.accounts.models import Team, Token, User
from kbpo.corpus.models import Corpus
from kbpo.evaluation.leaderboard import read_board
from kbpo.instances.models import Instance, Label, Target
from kbpo.instances.record import NewLabel, record_labels
from kbpo.money.models import Purpose
from kbpo.sampling.open_track import Money, create_track, open_track
from kbpo.scores.bring import runs_to_score
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from kbpo.tracks.registry import kind_of
from kbpo.tracks.texts.judgments import (
    CannotImport,
    SingleRating,
    export_judgments,
    import_judgments,
)
from kbpo.tracks.texts.store import Claim, load_inputs, store_text_claims
from kbpo.web.desk.judgments import import_file, judgment_lines
from rehearsal.browser import Browser
from tests.test.tracks.test_toy_kind import call, researcher, upload

INPUTS = tuple(f"a{number}" for number in range(6))
HEAD = "input_id\tsystem\tworker\tprompt\tvalue\tseconds"


def a_run(track: Track, name: str, texts: dict[str, str]) -> Submission:
    """A draft that predicts a text for each input."""
    submission = Submission.objects.create(
        track=track,
        team=Team.objects.create(name=name, slug=name.lower()),
        name=name,
        status="planned",
        file="x",
        file_name="x",
        file_size=1,
        file_digest="x",
        read_at=timezone.now(),
    )
    claims = [
        Claim(f"{key}\n{text}", at, {"input": key, "text": text})
        for at, (key, text) in enumerate(texts.items(), start=1)
    ]
    store_text_claims(submission.pk, track.corpus, "output", claims)
    return submission


@pytest.fixture
def track(db: None) -> Track:
    corpus = Corpus.objects.create(name="Articles", slug="articles", schema={})
    made = create_track(corpus, "Summaries", kind="generation", money=Money(budget=Decimal(50)))
    return open_track(made)


def lines(*rows: tuple[Any, ...]) -> io.BytesIO:
    return io.BytesIO("\n".join([HEAD, *("\t".join(map(str, row)) for row in rows)]).encode())


GOOD = [("a0", "One", "w1", "overall", 3, 20), ("a0", "One", "w2", "overall", 2, ""),
        ("a1", "One", "w1", "edit", 0.25, 9)]  # fmt: skip


def test_each_judgment_counts_once_and_equal_outputs_share_theirs(track: Track) -> None:
    one = a_run(track, "One", {"a0": "Same.", "a1": "Mine."})
    a_run(track, "Two", {"a0": "Same.", "a1": "Other."})
    done = import_judgments(track, lines(*GOOD), Report())
    assert (done.judgments, done.texts, done.known) == (3, 2, 0)
    values = {label.target.content["input"]: label.value for label in Label.objects.all()}
    assert sorted(values["a0"]["ratings"]["overall"]) == [0.5, 1.0], "1 to 3 becomes 0 to 1"
    assert values["a1"]["ratings"]["edit"] == [0.25]
    assert "w1" not in str(values), "of a worker a keyed hash"
    assert not any(label.is_public for label in Label.objects.all()), "the track is open"
    assert {label.source for label in Label.objects.all()} == {"import"}
    one.refresh_from_db()
    assert one.status == "read", "planned anew: what is judged is not to be paid for"
    done = import_judgments(track, lines(*GOOD), Report())
    assert (done.judgments, done.known, Label.objects.count()) == (0, 3, 2)
    told = [line.rstrip("\n").split("\t") for line in export_judgments(track, [])][1:]
    took = {(row[0], row[1], row[3], row[4]): row[5] for row in told}
    assert took == {
        ("a0", "One", "overall", "3.0"): "20.0",
        ("a0", "One", "overall", "2.0"): "",
        ("a1", "One", "edit", "0.25"): "9.0",
    }, "one row a judgment, with its time"


def test_two_ratings_by_one_person_of_one_shared_text_are_both_kept(track: Track) -> None:
    runs = [a_run(track, name, {"a0": "He left."}) for name in ("Two", "One")]
    rows = [("a0", "Two", "w1", "overall", 1, ""), ("a0", "One", "w1", "overall", 3, "")]
    for order in (rows, rows[::-1]):
        done = import_judgments(track, lines(*order), Report())
    assert (done.judgments, done.known) == (0, 2), "a file that comes again changes nothing"
    [label] = Label.objects.all()
    assert label.value["ratings"] == {"overall": [0.0, 1.0]} and label.n == 2
    instances = np.array(Instance.objects.filter(target=label.target).values_list("pk", flat=True))
    verdict = kind_of(track).judge(instances, [run.pk for run in runs])["overall"]
    assert verdict.tolist() == [[0.5, 0.5]]


def test_an_exported_file_has_one_row_a_judgment_and_changes_nothing_when_it_comes_back(
    track: Track,
) -> None:
    for name in ("One", "Two"):
        a_run(track, name, {"a0": "Same.", "a1": f"By {name}."})
    rows = [
        (key, name, worker, "overall", 1 + at % 3, "")
        for key in ("a0", "a1")
        for name in ("One", "Two")
        for at, worker in enumerate(("w1", "w2", name))
    ]
    assert import_judgments(track, lines(*rows), Report()).judgments == len(rows) == 12
    file = "".join(export_judgments(track, []))
    told = [line.split("\t") for line in file.splitlines()[1:]]
    assert sorted((row[0], row[1], float(row[4])) for row in told) == sorted(
        (key, name, float(value)) for key, name, _, _, value, _ in rows
    )
    back = import_judgments(track, io.BytesIO(file.encode()), Report())
    assert (back.judgments, back.known) == (0, 12)
    shared = Target.objects.get(content__text="Same.")
    here = [SingleRating(shared.pk, "somebody", "overall", 0.5, None)]
    assert list(export_judgments(track, here))[1] == "a0\tOne\tsomebody\toverall\t2.0\t\n"


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        (("zz", "One", "w", "overall", 3, 1), "Line 5: .*“zz” is not in the corpus"),
        (
            ("a0", "Nobody", "w", "overall", 3, 1),
            "Line 5: .*“Nobody” is not in this track; it has “One”",
        ),
        (("a0", "One", "w", "beauty", 3, 1), "Line 5: .*does not ask “beauty”"),
        (("a0", "One", "w", "overall", 4, 1), "Line 5: .*outside the scale"),
        (("a0", "One", "w", "overall", "NaN", 1), "Line 5: .*no finite number"),
    ],
)
def test_a_line_that_is_wrong_is_named_and_nothing_is_loaded(
    track: Track, row: tuple[Any, ...], sentence: str
) -> None:
    a_run(track, "One", {"a0": "Same.", "a1": "Mine."})
    with pytest.raises(CannotImport, match=sentence):
        import_judgments(track, lines(*GOOD, row), Report())
    assert not Label.objects.exists()
    done = import_judgments(track, lines(*GOOD, row), Report(), skip_bad_lines=True)
    assert (done.judgments, done.set_aside) == (3, 1)


def test_of_a_run_that_is_still_read_a_file_of_judgments_waits(track: Track) -> None:
    late = a_run(track, "One", {})
    Submission.objects.filter(pk=late.pk).update(status="received")
    with pytest.raises(CannotImport, match="“One”: still being read"):
        import_judgments(track, lines(*GOOD), Report())


def test_admins_import_and_export_on_the_desk_and_read_over_the_api(
    track: Track, client: Client
) -> None:
    a_run(track, "One", {"a0": "Same.", "a1": "Mine."})
    admin = User.objects.create_user("chief", password="x", is_staff=True)
    client.force_login(admin)
    address = f"/desk/tracks/{track.slug}/judgments/"
    page = client.get(address).content.decode()
    assert "are not asked again" in page
    bad = client.post(address, {"file": lines(("zz", "One", "w", "overall", 3, 1))})
    assert bad.status_code == 422 and "“zz”" in bad.content.decode()
    assert client.post(address).status_code == 422
    assert client.post(address, {"file": lines(*GOOD)}).status_code == 302
    out = b"".join(client.get(f"{address}?format=tsv").streaming_content)
    rows = [line.split("\t") for line in out.decode().splitlines()]
    assert "\t".join(rows[0]) == HEAD and len(rows) == 4
    assert sorted((row[0], row[1], row[3], float(row[4])) for row in rows[1:]) == [
        ("a0", "One", "overall", 2.0),
        ("a0", "One", "overall", 3.0),
        ("a1", "One", "edit", 0.25),
    ]
    assert import_judgments(track, io.BytesIO(out), Report()).judgments == 0, "they came back"
    api = f"/api/tracks/{track.slug}/judgments/"
    token = {"HTTP_AUTHORIZATION": f"Token {Token.create_with_secret(admin, 'x')[1]}"}
    assert Client().get(api).status_code == 404
    assert Client().get(api, **token).status_code == 200
    Track.objects.update(status="closed")
    assert Client().get(api).status_code == 200, "a closed track's are public"


def test_the_file_that_everybody_reads_tells_no_more_than_the_board(track: Track) -> None:
    """A closed track's: no drafts, no private run, no name of an anonymous one; nor what people
    said for a track on the same texts that is still open.
    """
    texts = {"a0": "Same.", "a1": "Mine."}
    runs = {name: a_run(track, name, texts) for name in ("Open", "Draft", "Hidden", "Shy")}
    rows = [(key, name, "w1", "overall", 3, 20) for key in texts for name in ("Draft", "Shy")]
    import_judgments(track, lines(*rows), Report())
    scored = Submission.objects.exclude(pk=runs["Draft"].pk)
    scored.update(status="scored", confirmed_at=clock.now(), scored_at=clock.now())
    Submission.objects.filter(pk=runs["Hidden"].pk).update(is_private=True)
    Submission.objects.filter(pk=runs["Shy"].pk).update(is_anonymous=True)
    other = open_track(
        create_track(track.corpus, "Later", kind="generation", money=Money(budget=Decimal(50)))
    )
    rate(other, Label.objects.earliest("pk").target)
    admin = User.objects.create_user("chief", password="x", is_staff=True)
    token = {"HTTP_AUTHORIZATION": f"Token {Token.create_with_secret(admin, 'x')[1]}"}
    Track.objects.filter(pk=track.pk).update(status="closed")

    def systems(**headers: Any) -> list[str]:
        answer: Any = Client().get(f"/api/tracks/{track.slug}/judgments/", **headers)
        body = b"".join(answer.streaming_content).decode()
        return sorted(line.split("\t")[1] for line in body.splitlines()[1:])

    shy = f"run {runs['Shy'].pk}"
    assert systems() == ["Open", "Open", shy, shy], "what names a draft's text is the first other's"
    assert systems(**token) == ["Draft", "Draft", "Open", "Shy", "Shy"], "admins read all"
    Label.objects.filter(source="crowd").update(public_at=clock.now())
    assert systems() == ["Open", "Open", "Open", shy, shy]


def test_what_one_service_exports_another_with_the_same_runs_reads(track: Track) -> None:
    """Also where two teams gave one name, which scores call the same."""
    runs = (("Alpha", "base", "Of Alpha."), ("Beta", "base", "Of Beta."), ("Beta", "own", "More."))

    def with_runs(place: Track) -> list[str]:
        for team, name, text in runs:
            row = a_run(place, f"{name} of {team}", {"a0": text})
            row.team, row.name = Team.objects.get_or_create(name=team, slug=team.lower())[0], name
            row.save()
        return list(runs_to_score(place))

    a_run(track, "Before", {"a0": "So that numbers differ."})
    names = with_runs(track)
    assert names == ["Before", "Alpha base", "Beta base", "own"]
    rows = [("a0", name, "w1", "overall", at, "") for at, name in enumerate(names[1:], start=1)]
    import_judgments(track, lines(*rows), Report())
    file = "".join(export_judgments(track, [])).encode()
    Submission.objects.all().delete()
    Team.objects.all().delete()

    corpus = Corpus.objects.create(name="Elsewhere", slug="elsewhere", schema={})
    other = create_track(corpus, "There", kind="generation", money=Money(budget=Decimal(50)))
    assert with_runs(other) == names[1:]
    assert import_judgments(other, io.BytesIO(file), Report()).judgments == 3
    there = Label.objects.filter(target__corpus=corpus)
    said = {row.target.content["text"]: row.value["ratings"]["overall"] for row in there}
    assert said == {"Of Alpha.": [0.0], "Of Beta.": [0.5], "More.": [1.0]}
    first = Submission.objects.get(track=other, team__name="Alpha").pk
    for name in ("Beta own", "own", f"run {first}", str(first), f"base ({first})", "Alpha base"):
        done = import_judgments(other, lines(("a0", name, f"w {name}", "edit", 0, "")), Report())
        assert done.judgments == 1, name
    with pytest.raises(CannotImport, match="“base” is not in this track; it has “Alpha base”"):
        import_judgments(other, lines(("a0", "base", "w2", "overall", 1, "")), Report())


def rate(track: Track, target: Target) -> None:
    """Somebody rates a text for a track; everybody sees that once the track closes."""
    question = Question.objects.create(
        track=track,
        target=target,
        interface="language_quality",
        status="settled",
        round=1,
        payer=Purpose("submission", 0),
        order=0.5,
        price=Decimal("0.05"),
        reward=Decimal("0.05"),
    )
    assignment = Assignment.objects.create(
        status="approved",
        hit=HIT.objects.create(track=track, platform="pool", reward=Decimal("0.05"), status="done"),
        worker=Worker.objects.create(handle="abc", platform="pool"),
        leased_until=clock.now(),
        submitted_at=clock.now(),
        raw={},
        seconds=9.0,
    )
    Response.objects.create(
        assignment=assignment,
        question=question,
        target=target,
        criterion="overall",
        value={"value": 0.5},
    )
    said = {"ratings": {"overall": [0.5]}, "people": {"overall": ["abc"]}}
    record_labels(
        [NewLabel(target.pk, said, "crowd", "ratings", 1, question.origin, question=question.pk)]
    )


def test_a_study_from_elsewhere_stands_on_the_board_and_nobody_was_asked(
    transactional_db: None, live_server: Any, tmp_path: Path
) -> None:
    path = tmp_path / "inputs.jsonl"
    path.write_text("".join(json.dumps({"input_id": key}) + "\n" for key in INPUTS))
    corpus, url = load_inputs("Articles", path), live_server.url
    track = open_track(
        create_track(corpus, "Summaries", kind="generation", money=Money(budget=Decimal(50)))
    )
    token = researcher("writers")
    texts = [json.dumps({"input_id": key, "output": f"Text of {key}."}) for key in INPUTS]
    run = upload(url, token, "Run", texts, track.slug)
    study = tmp_path / "study.tsv"
    rows = [HEAD] + [
        f"{key}\tRun\tw{who}\t{prompt}\t{value}\t"
        for at, key in enumerate(INPUTS)
        for who in (1, 2)
        for prompt, value in (
            ("overall", 3 if at < 3 else 1),
            ("fluency", 2),
            ("edit", 0.1),
        )
    ]  # nobody was asked for redundancy there, and nobody is here
    study.write_text("\n".join(rows) + "\nzz\tRun\tw\toverall\t1\t\n")
    with pytest.raises(CannotImport, match=r"Nothing was imported\. Line 38"):
        import_file(track, study, Report(), None)
    done = import_file(track, study, Report(), None, skip_bad_lines=True)
    assert "36 judgments of 6 texts were imported. 1 lines were set aside." in done.sentence
    call_command("tick", "--until-idle", verbosity=0)
    call(f"{url}/api/submissions/{run}/confirm/", token, b"{}")
    call_command("tick", "--until-idle", verbosity=0)
    assert Submission.objects.get(pk=run).status == "scored"
    assert not Question.objects.exists(), "nobody was asked"
    means = {
        criterion: read_board(track, distribution="instance", criterion=criterion)
        .rows[0]
        .figures["mean"]
        for criterion in ("overall", "edit")
    }
    assert means["overall"].value == pytest.approx(0.5)
    assert means["edit"].value == pytest.approx(0.1)
    rows = read_board(track, distribution="instance", criterion="redundancy").rows
    assert all(row.figures["mean"].value is None for row in rows), "and nothing is made up"
    assert Browser(url).get(f"/tracks/{track.slug}/?criterion=redundancy").status == 200
    assert len(list(judgment_lines(track))) == 37


def test_gold_of_imported_ratings_begins_with_them(track: Track, client: Client) -> None:
    a_run(track, "One", {"a0": "Same.", "a1": "Mine."})
    more = [("a0", "One", f"w{n}", "fluency", n, "") for n in (1, 2, 3)]
    import_judgments(track, lines(*GOOD, *more), Report())
    answers = {
        one.target.content["input"]: imported_answer(one) for one in imported_questions(track)
    }
    assert answers == {"a0": {"fluency": "2", "overall": "2"}, "a1": None}, "the middle; no mending"
    (asked,) = [one for one in imported_questions(track) if one.target.content["input"] == "a0"]
    client.force_login(User.objects.create(username="admin", is_staff=True))
    page = client.get(reverse("gold_know", args=[track.slug, asked.target_id])).content.decode()
    assert page.count(" checked") == 3, "no problem"
    send = {"fluency": "3", "redundancy": "3", "overall": "3", "why": "As imported."}
    assert client.post(reverse("gold_know", args=[track.slug, asked.target_id]), send)["Location"]
    assert Question.objects.get(status="gold").target == asked.target
