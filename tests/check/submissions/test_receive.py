"""Uploads are taken whole, once, and only where they may be."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from kbpo.submissions.models import Submission
from kbpo.submissions.receive import CannotReceive, change_description, withdraw_submission
from kbpo.submissions.withdraw import CannotChange
from kbpo.tracks.models import Track

Upload = Callable[..., Submission]


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_the_file_is_kept_as_it_came_with_its_digest(upload: Upload, uploads: Path) -> None:
    submission = upload(b"bytes as they are\r\n\x00", file_name="../../etc/passwd")
    assert submission.status == "received"
    assert submission.file_digest == hashlib.sha256(b"bytes as they are\r\n\x00").hexdigest()
    assert Path(submission.file.path).read_bytes() == b"bytes as they are\r\n\x00"
    assert submission.file_name == "passwd"
    assert [path.suffix for path in files(uploads)] == [""]
    assert os.stat(submission.file.path).st_mode & 0o777 == 0o600


def test_a_track_that_is_not_open_takes_nothing(toy: Any, upload: Upload, uploads: Path) -> None:
    toy.track.status = "frozen"
    with pytest.raises(CannotReceive, match="is frozen and takes no submissions") as refusal:
        upload(b"x")
    assert refusal.value.code == "track_not_open"
    assert not files(uploads)


def test_a_file_over_the_limit_is_not_kept(settings: Any, upload: Upload, uploads: Path) -> None:
    settings.UPLOAD_LIMIT_MB = 1
    with pytest.raises(CannotReceive, match="larger than 1 MB") as refusal:
        upload(bytes(1024 * 1024 + 1))
    assert refusal.value.code == "too_large"
    assert not files(uploads)
    assert not Submission.objects.exists()


def test_the_same_file_again_is_refused_with_a_pointer_unless_it_is_meant(
    upload: Upload, uploads: Path
) -> None:
    first = upload(b"same", name="First")
    with pytest.raises(CannotReceive, match="as First") as refusal:
        upload(b"same", refuse_same=True)
    assert (refusal.value.code, refusal.value.same_as) == ("same_file", first.pk)
    assert len(files(uploads)) == 1
    assert upload(b"same").pk != first.pk


def test_an_idempotency_key_gives_the_first_submission_again(
    toy: Any, upload: Upload, uploads: Path
) -> None:
    first = upload(b"one", name="First", idempotency_key="k")
    assert upload(b"one", idempotency_key="k") == first
    with pytest.raises(CannotReceive, match="was used for another file, First") as refusal:
        upload(b"two", idempotency_key="k")
    assert (refusal.value.code, refusal.value.same_as) == ("key_reused", first.pk)
    assert upload(b"two", idempotency_key="k", user="Tim", team="Neural") != first
    assert len(files(uploads)) == 2
    toy.track.pk = None
    with pytest.raises(CannotReceive, match="Use a new one"):
        upload(b"one", idempotency_key="k")


def test_a_run_keeps_its_name_on_every_track_and_gets_a_number_where_it_is_taken(
    toy: Any, upload: Upload
) -> None:
    assert [upload(body, name="Model").name for body in (b"1", b"2")] == ["Model", "Model 2"]
    assert upload(b"3", name="model", team="Neural", user="Tim").name == "model"
    with pytest.raises(CannotReceive, match="Model"):
        upload(b"4", name="MODEL", refuse_taken=True)
    first = toy.track
    toy.track = Track.objects.create(
        corpus=first.corpus, name="Another", slug="another", status="open", kind=first.kind
    )
    assert upload(b"1", name="Model").name == "Model"


def test_it_can_be_renamed_described_and_withdrawn_once(upload: Upload) -> None:
    submission = change_description(upload(b"x"), name="New", description="Why")
    assert (submission.name, submission.description) == ("New", "Why")
    with pytest.raises(CannotChange):
        change_description(submission, name="  ")
    at = withdraw_submission(submission).withdrawn_at
    assert at is not None
    assert withdraw_submission(submission).withdrawn_at == at


@pytest.mark.django_db(transaction=True)
def test_a_row_that_cannot_be_made_leaves_no_file(
    upload: Upload, uploads: Path, monkeypatch: Any
) -> None:
    def fail(**_: Any) -> None:
        raise RuntimeError("the database went away")

    monkeypatch.setattr(Submission.objects, "create", fail)
    with pytest.raises(RuntimeError):
        upload(b"x")
    assert not files(uploads)
    assert not connection.in_atomic_block
