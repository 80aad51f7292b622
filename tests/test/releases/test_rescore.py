"""A release computes its own board: offline, without Django, to ten digits;
what was altered is named.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest
import yaml
from django.conf import settings
from django.urls import reverse

from kbpo import clock
from kbpo.evaluation.data import load_data
from kbpo.instances.models import Label, Target
from kbpo.releases.write import CannotRelease, _Linked, write_release
from kbpo.sampling.open_track import close_track
from kbpo.submissions.models import Submission
from kbpo.submissions.withdraw import withdraw_submission
from scoring.release import BadRelease, Release, data_tables, read_data, with_checksum
from scoring.rescore import Rescored, rescore_release
from tests.conftest import Toy
from tests.test.evaluation.replay import Replay
from tests.test.golden.fixed_world import FixedWorld
from tests.test.golden.worlds import by_draws, by_thresholds, predicts
from tests.test.scores.conftest import World, studied, world

ROOT = Path(__file__).resolve().parents[3]
pytestmark = pytest.mark.django_db
__all__ = ["studied", "world"]


@pytest.fixture(autouse=True)
def _at_once(settings: Any) -> None:
    settings.DEBOUNCE_SECONDS = 0


def finished(world: FixedWorld) -> FixedWorld:
    """The world once everything that was asked has been answered."""
    for _ in range(30):
        if not Submission.objects.filter(status__in=["confirmed", "judging"]).exists():
            return world
        world.answer()
        world.tick()
    raise AssertionError("something is never scored")


def closed_and_released(world: FixedWorld, place: Path) -> Release:
    close_track(finished(world).track)
    world.track.refresh_from_db()
    write_release(world.track, place)
    return Release(place)


def altered(
    release: Release, table: str, change: Callable[[dict[str, Any]], bool], check: bool
) -> int:
    """The line of the first row that `change` changes; with `check`, so that it seems untouched."""
    path = release.path / f"{table}.jsonl"
    lines = path.read_text().splitlines()
    for at, line in enumerate(lines):
        row = json.loads(line)
        if change(row):
            if check:
                del row["check"]
                row = with_checksum(row)
            lines[at] = json.dumps(row)
            path.write_text("\n".join(lines) + "\n")
            return at + 1
    raise AssertionError("nothing was changed")


def flip(row: dict[str, Any]) -> bool:
    if row["relation"] != 1.0:
        return False
    row["relation"] = 0.0
    return True


def two_systems(files: Path) -> FixedWorld:
    """Two systems by draws, and three documents in which what is not marked is false; a third was
    withdrawn before anybody answered.
    """
    world = FixedWorld("Two systems", files, "iid", n_documents=8, half_width="0.120")
    world.upload("patterns", "Patterns", predicts("patterns", 0.55, 0.15))
    world.judge("patterns", "Patterns")
    world.read_in_full([1, 4, 6], closed=True)
    world.upload("neural", "Neural", predicts("neural", 0.8, 0.45))
    world.judge("neural", "Neural")
    world.upload("third", "Third", predicts("third", 0.6, 0.3))
    world.confirm("third", "Third")
    withdraw_submission(world.runs["third"])
    return world


@pytest.mark.parametrize(
    "make",
    [
        two_systems,
        *(pytest.param(one, marks=pytest.mark.soak) for one in (by_draws, by_thresholds)),
    ],
)
def test_a_board_is_recomputed_from_its_release(
    make: Callable[[Path], FixedWorld], tmp_path: Path
) -> None:
    release = closed_and_released(make(tmp_path), tmp_path / "release")
    found = rescore_release(release)
    assert found.agrees, [*found.altered, *map(str, found.differences)][:5]
    assert found.numbers > 60
    if make is two_systems:
        _leaves_out_what_has_not_entered(release)
        _hides_what_a_withdrawn_run_says_alone(release)
    if make is not by_thresholds:  # whose board has nothing as published
        _misses_what_is_left_out(release)
    line = altered(release, "labels", flip, check=False)
    found = rescore_release(Release(release.path))
    assert [one for one in found.altered if f"labels.jsonl, line {line} (instance" in one]
    runs = {row["system"]: f"{row['team']} {row['name']}:" for _, row in release.lines("systems")}
    assert found.differences and all(
        str(one).startswith(runs[one.system]) for one in found.differences
    )
    line = altered(release, "estimates", _another_value, check=False)
    release = Release(release.path)
    system = next(row["system"] for at, row in release.lines("estimates") if at == line)
    [named] = [one for one in rescore_release(release).altered if one.startswith("estimates.jsonl")]
    assert f"(system {system}, {runs[system].removesuffix(':')})" in named


def test_a_track_without_a_run_has_no_release(toy: Toy, tmp_path: Path) -> None:
    close_track(toy.track)
    toy.track.refresh_from_db()
    with pytest.raises(CannotRelease, match="No run of Toy track was ever sampled"):
        write_release(toy.track, tmp_path / "release")


def test_a_private_run_is_part_of_a_release_without_its_name(toy: Toy, tmp_path: Path) -> None:
    world = Replay.of(toy, 40, 0.4)
    world.judge(world.upload("Patterns", range(40)))
    row = world.upload("Neural", range(20))
    Submission.objects.filter(pk=row.pk).update(is_private=True, description="told to nobody")
    row.refresh_from_db()
    world.judge(row)
    close_track(toy.track)
    Label.objects.filter(public_at=None).update(public_at=clock.now())
    toy.track.refresh_from_db()
    Submission.objects.filter(pk=row.pk).update(status="judging", scored_at=None)
    with pytest.raises(CannotRelease, match=f"1 confirmed run .* still judged: .*{row.name}"):
        write_release(toy.track, tmp_path / "release")
    Submission.objects.filter(pk=row.pk).update(status="scored", scored_at=clock.now())
    write_release(toy.track, tmp_path / "release")
    release = Release(tmp_path / "release")
    assert rescore_release(release).agrees
    [held] = [one for _, one in release.lines("systems") if one["system"] == row.pk]
    assert (held["name"], held["team"]) == (f"private run {row.pk}", "")
    for file in release.path.iterdir():
        for secret in (row.name, "told to nobody", str(row.team.name)):
            assert secret.encode() not in file.read_bytes(), f"{secret} in {file.name}"
    withdraw_submission(row)
    write_release(toy.track, tmp_path / "later")
    later = Release(tmp_path / "later")
    assert row.pk in {one["system"] for _, one in later.lines("predictions")}
    assert row.pk not in {one["system"] for _, one in later.lines("estimates")}, "what it was told"


def test_a_release_leaves_out_what_a_withdrawn_run_predicts_and_nobody_judged(
    toy: Toy, tmp_path: Path
) -> None:
    """What was judged stays under a number, since others' numbers rest on it: these rescore."""
    world = Replay.of(toy, 500, 0.4)
    stays = world.judge(world.upload("Patterns", range(200)))
    gone = world.judge(world.upload("Neural", range(150, 500)))
    close_track(toy.track)
    Label.objects.filter(public_at=None).update(public_at=clock.now())
    toy.track.refresh_from_db()
    write_release(toy.track, tmp_path / "before")
    withdraw_submission(gone)
    write_release(toy.track, tmp_path / "after")
    before, after = Release(tmp_path / "before"), Release(tmp_path / "after")
    assert rescore_release(after).agrees
    judged = {one["instance"] for _, one in before.lines("labels")}
    assert judged == {one["instance"] for _, one in after.lines("labels")}

    def predicted(release: Release, run: Submission) -> set[int]:
        rows = (one for _, one in release.lines("predictions"))
        return {one["instance"] for one in rows if one["system"] == run.pk}

    assert predicted(after, stays) == predicted(before, stays)
    assert predicted(after, gone) == predicted(before, gone) & judged
    never = predicted(before, gone) - predicted(before, stays) - judged
    assert len(never) > 50, "all was judged: a weak test"
    assert not never & {one["instance"] for _, one in after.lines("instances")}
    targets = {world.target[world.instance.index(one)] for one in never}
    for table in ("targets", "draws", "checks"):
        assert not targets & {one["target"] for _, one in after.lines(table)}, table
    shared = predicted(before, gone) & predicted(before, stays) - judged
    for _, one in after.lines("instances"):
        assert one["instance"] not in shared or gone.pk not in one.get("predicted_by", ())


def _another_value(row: dict[str, Any]) -> bool:
    row["value"] = 0.123
    return True


def _with_estimates(release: Release, rows: list[dict[str, Any]], about: dict[str, Any]) -> Release:
    """The release with other estimates, and checksums that fit them."""
    texts = {
        "estimates.jsonl": "".join(json.dumps(with_checksum(row)) + "\n" for row in rows),
        "release.json": json.dumps(about),
    }
    sums = (release.path / "SHA256SUMS").read_text().splitlines()
    for name, text in texts.items():
        (release.path / name).write_text(text)
        digest = hashlib.sha256(text.encode()).hexdigest()
        sums = [f"{digest}  {name}" if one.endswith(f"  {name}") else one for one in sums]
    (release.path / "SHA256SUMS").write_text("\n".join(sums))
    return Release(release.path)


def _says_how_it_is_cited(release: Release, world: FixedWorld) -> None:
    """CITATION.cff has what its format demands, and the address of this very evaluation."""
    said = yaml.safe_load((release.path / "CITATION.cff").read_text())
    assert said["cff-version"] == "1.2.0" and said["message"] and said["authors"][0]["name"]
    assert world.track.name in said["title"] and said["type"] == "dataset"
    assert said["date-released"] == release.metadata["made_at"][:10]
    number = world.track.evaluations.get(number=release.metadata["board"]["evaluation"]).number
    address = reverse("evaluation", args=[world.track.slug, number])
    assert said["url"] == settings.SITE_URL + address
    assert "  CITATION.cff\n" in (release.path / "SHA256SUMS").read_text()


def _leaves_out_what_has_not_entered(release: Release) -> None:
    """Nothing; what only the withdrawn run states is no fact of the pool, and is read so."""
    data = read_data(release)
    assert data.facts is not None and data.shown.tolist() == [True, True, False]
    left_out = data.facts.in_scope & ~data.facts.counted
    assert left_out.any()
    assert np.array_equal(
        left_out, data.facts.in_scope & (data.pool.member[:, :2].sum(axis=1) == 0)
    )


def _hides_what_a_withdrawn_run_says_alone(release: Release) -> None:
    """Nothing; its numbers are needed for overlaps of draws, and what they are about is not."""
    [third] = [one["system"] for _, one in release.lines("systems") if not one["takes_part"]]
    of = {one["instance"]: one for _, one in release.lines("instances")}
    place = {one["target"]: one for _, one in release.lines("targets")}
    told = {one["instance"] for _, one in release.lines("predictions") if one["system"] != third}
    judged = {of[one["instance"]]["target"] for _, one in release.lines("labels")}
    told_targets = {of[one]["target"] for one in told} | judged
    hidden = [one for one in of.values() if one["target"] not in told_targets]
    assert hidden, "the withdrawn run says nothing of its own: a weak test"
    for one in hidden:
        assert one["predicate"] is one["subject"] is one["object"] is None
        where = place[one["target"]]
        assert where["key"] is where["document_key"] is where["spans"] is None
    assert all(of[one]["predicate"] and place[of[one]["target"]]["spans"] for one in told)


def _misses_what_is_left_out(release: Release) -> None:
    """Whoever leaves something out of the estimates and makes all checksums anew is told of it."""
    rows = [row for _, row in release.lines("estimates")]
    rows = [{name: row[name] for name in row if name != "check"} for row in rows]
    about = release.metadata

    def without(figure: str, which: slice = slice(None)) -> list[dict[str, Any]]:
        changed = rows[which]
        return [
            {name: row[name] for name in row if name != figure or row not in changed}
            for row in rows
        ]

    assert rescore_release(_with_estimates(release, rows, about)).agrees
    for figure in ("value", "high80", "n_labels"):
        with pytest.raises(BadRelease, match=rf"estimates.jsonl, line 1 has no {figure}\."):
            rescore_release(_with_estimates(release, without(figure), about))
    with pytest.raises(BadRelease, match=r"line 2 has no n_checked\."):
        rescore_release(_with_estimates(release, without("n_checked", slice(1, 2)), about))
    found = rescore_release(_with_estimates(release, without("n_checked"), about))
    assert found.agrees, "older releases have it nowhere"

    def is_simple(row: dict[str, Any], quantity: str) -> bool:
        return row["method"] == "simple" and row["quantity"] == quantity

    no_recall = [row for row in rows if not is_simple(row, "recall")]
    neither = [row for row in no_recall if not is_simple(row, "f1")]
    assert len(neither) < len(no_recall) < len(rows)
    valued = {
        row["quantity"] for row in rows if row["method"] == "simple" and row["value"] is not None
    }
    assert "recall" in valued, "of what is blank nothing can be missing"
    older = {**about, "board": {**about["board"]}}
    del older["board"]["simple_has_recall"]
    for some, told, quantities in (
        (no_recall, older, {"recall"}),
        (neither, about, {"recall", "f1"}),
        (neither, older, set()),
    ):
        found = rescore_release(_with_estimates(release, some, told))
        assert found.altered == []
        assert {one.quantity for one in found.differences} == quantities & valued
        assert {one.method for one in found.differences} <= {"simple"}


@pytest.mark.soak
def test_what_was_altered_in_a_release_is_named(tmp_path: Path) -> None:
    """Second runs, documents followed up, experts' checks: all that a release can hold."""
    world = by_thresholds(tmp_path)
    with pytest.raises(CannotRelease, match="Close it first"):
        write_release(world.track, tmp_path / "release")
    release = closed_and_released(world, tmp_path / "release")
    found = rescore_release(release)
    assert found.agrees, [*found.altered, *map(str, found.differences)][:5]
    assert found.numbers > 60
    assert found.left_out == {}
    methods = [row["method"] for _, row in release.lines("estimates")]
    assert methods.count("expert") > 5, "experts corrected nothing: a weak test"
    assert "slices" in release.metadata["rows"] and found.numbers > 250
    _tells_no_secrets(release, world)
    _says_how_it_is_cited(release, world)
    _is_read_without_django(release, tmp_path)

    before = (release.path / "labels.jsonl").read_text()
    line = altered(release, "labels", flip, check=False)
    found = rescore_release(Release(release.path))
    assert [one for one in found.altered if f"labels.jsonl, line {line} (instance" in one]
    assert _names_numbers(found)

    # Whoever also mends the row's check is told by the file's; and the numbers tell.
    (release.path / "labels.jsonl").write_text(before)
    altered(release, "labels", flip, check=True)
    found = rescore_release(Release(release.path))
    assert found.altered == [
        "labels.jsonl is not the file that was published: its checksum differs."
    ]
    assert _names_numbers(found)

    (release.path / "labels.jsonl").write_text(before)
    _names_what_experts_said(release)
    _names_what_makes_no_sense(release)

    (release.path / "labels.jsonl").write_text(before[: len(before) // 2])
    with pytest.raises(BadRelease, match=r"labels.jsonl, line \d+"):
        rescore_release(Release(release.path))


def test_rated_texts_and_their_metrics_are_recomputed_too(studied: World, tmp_path: Path) -> None:
    """Single ratings, a judge that the model learns from, and the same without it."""
    _close(studied)
    _name_who_rated()
    write_release(studied.track, tmp_path / "release")
    _says_who_rated_under_new_codes(studied, Release(tmp_path / "release"))
    found = rescore_release(Release(tmp_path / "release"))
    assert found.agrees, [*found.altered, *map(str, found.differences)][:5]
    methods = {row["method"] for _, row in Release(tmp_path / "release").lines("estimates")}
    assert {"centred", "unaided"} <= methods and found.numbers >= 8


def test_nothing_links_the_ratings_of_somebody_who_is_not_to_be_known(studied: World) -> None:
    _name_who_rated()
    data = load_data(studied.track)
    rows = list(data_tables(data)["ratings"])
    said = list(_Linked(data, {"person 3"}).replace_codes(rows))
    codes: dict[tuple[str, str], list[int]] = {}
    for row, coded in zip(rows, said, strict=True):
        name = data.noise[row["criterion"]].single.who[row["judge"]]
        codes.setdefault((row["criterion"], name), []).append(coded["judge"])
    assert len({code for some in codes.values() for code in some}) > len(codes)
    for (_, name), some in codes.items():
        assert len(some) > 2
        assert len(set(some)) == (len(some) if name == "person 3" else 1), name


def test_the_same_rows_stand_in_parquet(studied: World, tmp_path: Path) -> None:
    _close(studied)
    write_release(studied.track, tmp_path / "one")
    release = Release(tmp_path / "one")
    for table in ("predictions", "labels", "systems", "estimates"):
        stored = pyarrow.parquet.read_table(release.path / f"{table}.parquet").to_pylist()
        rows = [row for _, row in release.lines(table)]
        assert stored == rows, table
    write_release(studied.track, tmp_path / "another")
    assert studied.track.evaluations.count() == 2, "what a release prints stays"


def _close(studied: World) -> None:
    """A track that everything on has been scored, and is public."""
    now = clock.now()
    studied.track.closed_at = now
    studied.track.status = "closed"
    studied.track.save()
    Submission.objects.update(status="scored", confirmed_at=now, sampled_at=now, scored_at=now)
    Label.objects.update(public_at=now)


def _name_who_rated() -> None:
    """Twenty people in turn."""
    labels = list(Label.objects.order_by("pk"))
    for at, label in enumerate(labels):
        label.value["people"] = {
            criterion: [f"person {(at + which) % 20}" for which in range(len(ratings))]
            for criterion, ratings in label.value["ratings"].items()
        }
    Label.objects.bulk_update(labels, ["value"])


def _says_who_rated_under_new_codes(studied: World, release: Release) -> None:
    own = [row["judge"] for row in data_tables(load_data(studied.track))["ratings"]]
    rows = [row for _, row in release.lines("ratings")]
    told = [row["judge"] for row in rows]
    assert len(told) == len(own) > 100 and told != own
    people = {(row["criterion"], judge) for row, judge in zip(rows, own, strict=True)}
    pairs = {(row["criterion"], judge, row["judge"]) for row, judge in zip(rows, own, strict=True)}
    assert len(people) == len(pairs) == len(set(told)), "a code is not one person's"


def _names_what_experts_said(release: Release) -> None:
    """An altered check is named, and only what it corrects does not follow any more."""
    kept = (release.path / "checked.jsonl").read_text()
    for check in (False, True):
        line = altered(release, "checked", flip, check)
        found = rescore_release(Release(release.path))
        named = f"checked.jsonl, line {line} (" if not check else "its checksum differs"
        assert [one for one in found.altered if named in one], found.altered
        assert {one.method for one in found.differences} == {"expert", "expert_like"}
        (release.path / "checked.jsonl").write_text(kept)


def _names_what_makes_no_sense(release: Release) -> None:
    """What was altered is named also where nothing can be computed any more."""

    def impossible(row: dict[str, Any]) -> bool:
        if not row["drawn"]:
            return False
        row["threshold"] = row["draw"] = row["document"] = 0.0
        return True

    def nameless(row: dict[str, Any]) -> bool:
        return row.pop("name") != ""

    for table, change in (("targets", impossible), ("systems", nameless)):
        kept = (release.path / f"{table}.jsonl").read_text()
        line = altered(release, table, change, check=False)
        try:  # what is not needed for any number hinders none
            told = rescore_release(Release(release.path)).altered
        except BadRelease as bad:
            assert "was altered" in str(bad)
            told = [str(bad)]
        assert [one for one in told if one.startswith(f"{table}.jsonl, line {line} (")], told
        (release.path / f"{table}.jsonl").write_text(kept)


def _names_numbers(found: Rescored) -> bool:
    said = [str(one) for one in found.differences]
    return any("precision" in one and "is printed as" in one for one in said)


def _tells_no_secrets(release: Release, world: FixedWorld) -> None:
    everything = "".join(path.read_text(errors="replace") for path in release.path.iterdir())
    world.corpus.refresh_from_db()
    for secret in (world.corpus.hash_key, "golden track", "golden-admin"):
        assert secret not in everything
    kept = {row["target"]: row["u"] for _, row in release.lines("targets")}
    own = dict(Target.objects.filter(pk__in=kept).values_list("pk", "u"))
    assert not [pk for pk, u in kept.items() if u == own[pk]]


def _is_read_without_django(release: Release, place: Path) -> None:
    packed = place / "release.zip"
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in release.path.iterdir():
            archive.write(path, path.name)
    script = (
        "import sys; from kbpo_client.commands import main;"
        f"main(['rescore', {str(packed)!r}], standalone_mode=False);"
        "bad = {name.split('.')[0] for name in sys.modules} & {'django', 'kbpo', 'psycopg2'};"
        "assert not bad, bad"
    )
    told = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONPATH": f"{ROOT / 'client'}:{ROOT}", "PATH": "/usr/bin:/bin"},
        cwd=place,
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    assert "recomputed numbers agree to 10 significant digits" in told.stdout
