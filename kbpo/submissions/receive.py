"""Receives uploads: stores the file completely, then creates the submission, which is read later.
Files refer to the runs of a track by `run_names_in_files`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import PurePath

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Count, Sum

from kbpo import clock
from kbpo.accounts.models import Team, User
from kbpo.queue import wake_step
from kbpo.submissions.keep import (
    BLOCK,
    Readable,
    StoredFile,
    TooLarge,
    delete_file,
    file_digest,
    store_file,
)
from kbpo.submissions.models import Submission
from kbpo.submissions.withdraw import (
    DRAFT_HAS_IT,
    TAKEN,
    CannotChange,
    change_description,
    check_link,
    clean_line,
    clean_text,
    set_submission_role,
    withdraw_submission,
)
from kbpo.tracks.models import Track

__all__ = [
    "CannotChange",
    "CannotReceive",
    "change_description",
    "clean_line",
    "find_same_file",
    "set_submission_role",
    "store_submission",
    "unread_runs_sentence",
    "withdraw_submission",
]

DRAFTS = ("received", "read", "planned")
NOT_TAKEN = ("refused", "expired", "withdrawn", "failed")
"""Statuses of uploads that do not participate, or no longer do: their file may be uploaded again"""


class CannotReceive(Exception):
    """Raised for a refused upload. Has a code for programs, a sentence for people, and the
    submission that it repeats.
    """

    def __init__(self, text: str, code: str, same_as: int | None = None) -> None:
        super().__init__(text)
        self.code = code
        self.same_as = same_as


def store_submission(
    track: Track,
    team: Team,
    user: User,
    file: Readable,
    *,
    name: str,
    description: str = "",
    file_name: str,
    idempotency_key: str | None = None,
    refuse_same: bool = False,
    refuse_taken: bool = False,
    **said: str | bool,
) -> Submission:
    """Store a submission with its file and return it. If this user has already sent the file with
    this idempotency key, the earlier submission is returned. A name that another run of the team
    has on the track gets a number appended; with `refuse_taken`, for a name that a user typed, it
    is refused with code `name_taken`. `said` contains the links to paper and code and the
    visibility, as in `change_description`.

    With `refuse_same`, a file that the team has on the track already is refused with code
    `same_file` and the number of that submission. Raises CannotReceive, in which case nothing is
    stored. The file is stored before the row, so that no row is ever without its file.
    """
    if (earlier := _find_earlier_submission(user, idempotency_key, track, team)) is not None:
        return _require_same_file(earlier, _uploaded_digest(file))
    if track.refusal:
        raise CannotReceive(track.refusal, "track_not_open")
    _check_quota(team, getattr(file, "size", None) or 0)
    title = clean_line(name)[:80].strip()
    if not title:
        raise CannotReceive("Give the submission a name.", "no_name")
    try:
        for link in ("paper_url", "code_url"):
            check_link(str(said.get(link, "")))
    except CannotChange as problem:
        raise CannotReceive(str(problem), "bad_link") from problem
    try:
        kept = store_file(file)
    except TooLarge as problem:
        raise CannotReceive(str(problem), "too_large") from problem
    try:
        if refuse_same and (same := find_same_file(team, track, kept.digest)) is not None:
            raise CannotReceive(
                f"Your team has submitted this very file already, as {same.name}. Say so if you"
                " mean it.",
                "same_file",
                same.pk,
            )
        with transaction.atomic():
            # names are given one by one
            Team.objects.select_for_update(of=("self",), no_key=True).get(pk=team.pk)
            if refuse_taken:
                _check_name_is_unused(team, track, title)
            free = unused_name(team, track, title)
            return _create_submission(
                track,
                team,
                user,
                kept,
                free,
                clean_text(description),
                file_name,
                idempotency_key,
                said,
            )
    except (IntegrityError, CannotReceive):  # perhaps another request with this key was first
        delete_file(kept)
        if (earlier := _find_earlier_submission(user, idempotency_key, track, team)) is not None:
            return _require_same_file(earlier, kept.digest)
        raise
    except BaseException:
        delete_file(kept)
        raise


def _check_quota(team: Team, size: int) -> None:
    """Raise CannotReceive if this many more bytes exceed the team's daily quota. Called before a
    file is stored, and again under the team's lock, so that concurrent uploads cannot use the same
    quota.
    """
    submissions = Submission.objects.filter(team=team)
    if submissions.filter(status__in=DRAFTS).count() >= settings.TEAM_DRAFTS:
        raise CannotReceive(
            f"Your team has {settings.TEAM_DRAFTS} uploads that wait to be confirmed. Confirm or"
            " withdraw some first.",
            "too_many_drafts",
        )
    yesterday = clock.now() - timedelta(days=1)
    today = submissions.filter(received_at__gt=yesterday)
    sent = today.aggregate(n=Count("pk"), bytes=Sum("file_size", default=0))
    for n, most, what in (
        (sent["n"], settings.TEAM_DAY_UPLOADS, "files"),
        (count_items_since(team, yesterday), settings.TEAM_DAY_ITEMS, "predictions"),
    ):
        if n >= most:
            raise CannotReceive(
                f"Your team has uploaded {n:,} {what} within a day; {most:,} is the most. Try again"
                " tomorrow.",
                "too_much_today",
            )
    if sent["bytes"] + size > settings.TEAM_DAY_MB * BLOCK:
        raise CannotReceive(
            f"Your team has uploaded {sent['bytes'] // BLOCK:,} MB within a day;"
            f" {settings.TEAM_DAY_MB:,} MB is the most. Try again tomorrow, or pack the file with"
            " gzip.",
            "too_much_today",
        )


def count_items_since(team: Team, moment: datetime, *, excluded_submission: int = 0) -> int:
    """Return the number of items in the files that a team uploaded after a moment, without the
    submission `excluded_submission`; unread files count 0.
    """
    rows = Submission.objects.filter(team=team, received_at__gt=moment).exclude(
        pk=excluded_submission
    )
    told = rows.select_related("track").only("counts", "track")
    return sum(row.n_items or 0 for row in told)


def find_same_file(team: Team, track: Track, digest: str) -> Submission | None:
    """Return the team's latest participating submission of the same bytes on the track; None if
    there is none.
    """
    submissions = Submission.objects.filter(team=team, track=track, file_digest=digest).exclude(
        status__in=NOT_TAKEN
    )
    return submissions.order_by("-pk").first()


def _create_submission(
    track: Track,
    team: Team,
    user: User,
    stored_file: StoredFile,
    name: str,
    description: str,
    file_name: str,
    key: str | None,
    fields: dict[str, str | bool],
) -> Submission:
    _check_quota(team, stored_file.size)  # others may have come while the file was stored
    submission = Submission.objects.create(
        status="received",
        track=track,
        team=team,
        user=user,
        name=name,
        description=description[:2000],
        file=stored_file.name,
        file_name=clean_text(PurePath(file_name.replace("\\", "/")).name)[:255] or "upload",
        file_size=stored_file.size,
        file_digest=stored_file.digest,
        idempotency_key=key,
        **fields,
    )
    wake_step("ingest")
    return submission


def _check_name_is_unused(team: Team, track: Track, name: str) -> None:
    """Raise CannotReceive if a run of the team on the track has the name. The message names a draft
    with that name, since withdrawing the draft frees it.
    """
    holder = Submission.objects.filter(team=team, track=track).named(name).first()
    if holder is None:
        return
    says = DRAFT_HAS_IT if holder.status in DRAFTS else TAKEN
    raise CannotReceive(says.format(name=holder.name, number=holder.pk), "name_taken")


def unused_name(team: Team, track: Track, name: str) -> str:
    """Return the name itself, or “name 2”, “name 3” … if runs of the team on the track have that
    name already. Runs on other tracks do not matter.
    """
    free, number = name, 1
    while Submission.objects.filter(team=team, track=track).named(free).exists():
        number += 1
        free = f"{name[: 79 - len(str(number))]} {number}"
    return free


def _uploaded_digest(file: Readable) -> str:
    try:
        return file_digest(file)
    except TooLarge as problem:
        raise CannotReceive(str(problem), "too_large") from problem


def _require_same_file(earlier: Submission, digest: str) -> Submission:
    """Return the earlier submission with a key if it has the same file. Otherwise raises
    CannotReceive: a script that reused its key would mistake another run's scores for those of its
    new one.
    """
    if earlier.file_digest != digest:
        raise CannotReceive(
            f"This Idempotency-Key was used for another file, {earlier.name}. Use a new one.",
            "key_reused",
            earlier.pk,
        )
    return earlier


def _find_earlier_submission(
    user: User, key: str | None, track: Track, team: Team
) -> Submission | None:
    if key is None:
        return None
    if len(key) > 80:
        raise CannotReceive("An Idempotency-Key has at most 80 characters.", "bad_key")
    row = (
        Submission.objects.select_related("track", "team")
        .filter(user=user, idempotency_key=key)
        .first()
    )
    if row is not None and row.track_id != track.pk:
        raise CannotReceive(
            f"This Idempotency-Key was used for a submission to {row.track.name}. Use a new one.",
            "key_reused",
        )
    if row is not None and row.team_id != team.pk:
        raise CannotReceive(
            f"This Idempotency-Key was used for a submission of {row.team.name}. Use a new one.",
            "key_reused",
        )
    return row


def unread_runs_sentence(track: Track) -> str:
    """Return a sentence that names the runs of a track whose files are still being read; empty if
    there are none. It explains why a file cannot refer to predictions of these runs yet.
    """
    names = Submission.objects.filter(track=track, status="received").values_list("name", flat=True)
    quoted = ", ".join(f"“{name}”" for name in names)
    return f"{quoted}: still being read. Bring this file again in a moment." if quoted else ""


@dataclass(frozen=True)
class RunNames:
    """The names by which files refer to the runs of a track."""

    written: dict[int, str]
    """Run -> its name in files that we write, in the order of arrival"""
    read: dict[str, str]
    """Other accepted names of runs -> the name in files that we write"""


def run_names_in_files(track: Track, *, public: bool = False) -> RunNames:
    """Return the names of a track's runs in files: the run's name, preceded by its team's if
    several teams chose the same. Files may also refer to a run by team and name, and on this
    service by its number.

    The `public` names are the public names of the runs on the board.
    """
    runs = Submission.objects.filter(track=track).exclude(status__in=NOT_TAKEN)
    runs = (runs.on_board() if public else runs).select_related("team").order_by("pk")
    written = {run.pk: run.public_name if public else run.name for run in runs}
    full = {run.pk: run.full_name if public else run.own_name for run in runs}
    for longer in (full, {pk: f"{name} ({pk})" for pk, name in full.items()}):
        counted = Counter(written.values())
        written = {pk: name if counted[name] == 1 else longer[pk] for pk, name in written.items()}
    also: dict[str, set[str]] = {}
    for run in runs:
        for name in (full[run.pk], str(run.pk), f"run {run.pk}", f"{run.name} ({run.pk})"):
            also.setdefault(name, set()).add(written[run.pk])
    taken = set(written.values())
    read = {
        name: meant.pop() for name, meant in also.items() if len(meant) == 1 and name not in taken
    }
    return RunNames(written, read)
