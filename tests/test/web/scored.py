"""A board with systems on it, made of a report that somebody wrote down, and of labels that people
gave.
"""

from __future__ import annotations

from kbpo.accounts.models import Team
from kbpo.evaluation.models import Evaluation
from kbpo.instances.models import Instance
from kbpo.instances.record import NewLabel, record_labels
from kbpo.submissions.models import Submission
from kbpo.tracks.models import Track
from scoring.report import Figure, Key
from tests.conftest import Toy
from tests.reports import figures_of, keep


def make_study(track: Track, team: Team) -> None:
    """Makes a track a study, whose team sees all judgments at once."""
    track.is_study, track.owner = True, team
    track.save()


def make_board(toy: Toy, n: int) -> Evaluation:
    """An evaluation with n scored systems of n teams, the later the better."""
    evaluation = Evaluation.objects.create(track=toy.track, number=1)
    keep(evaluation, documents=2, of_documents=4)
    for at in range(n):
        team = Team.objects.create(name=f"Team {at}", slug=f"team-{at}")
        row = Submission.objects.create(
            track=toy.track,
            team=team,
            name=f"run {at}",
            status="scored",
            file="x",
            file_name="x",
            file_size=1,
            file_digest=str(at),
        )
        score(evaluation, row, 0.2 + 0.5 * at / n)
        evaluation.standing.append(row.pk)
    evaluation.save()
    return evaluation


def score(evaluation: Evaluation, row: Submission, value: float) -> None:
    """Figures of precision, recall and F1, all of one value."""
    figures = figures_of(evaluation)
    centred = [(quantity, "centred") for quantity in ("f1", "precision", "recall")]
    for quantity, method in (*centred, ("precision", "joint"), ("precision", "simple")):
        distribution = "instance" if quantity == "recall" else row.track.distribution
        figures[Key(row.pk, quantity, "correct", distribution, method)] = Figure(
            value=value,
            low80=value - 0.02,
            high80=value + 0.02,
            low95=value - 0.03,
            high95=value + 0.03,
            n_labels=80,
            n_documents=2,
        )
    keep(evaluation, figures)


def judge_all(row: Submission) -> int:
    """How many relations of a submission got a label that says: it holds."""
    instances = Instance.objects.filter(predictions__submission=row).select_related(
        "predicate", "target"
    )
    labels = []
    for one in instances:
        forward = (one.subject_begin, one.subject_end) == (one.target.a_begin, one.target.a_end)
        part = one.predicate.name + (">" if forward else "<")
        value = {"shown": [part], "holds": [part], "votes": {part: 3}}
        labels.append(NewLabel(one.target_id, value, "crowd", "majority", 3, f"question:{one.pk}"))
    return record_labels(labels)
