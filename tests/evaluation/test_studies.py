"""The command `study` writes tables and plots, or says why there is nothing to study."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from tests.conftest import Toy
from tests.evaluation.world import LIVES, World

pytestmark = pytest.mark.django_db


def test_reach_is_written_as_csv_and_svg(toy: Toy, tmp_path: Path) -> None:
    world = World(toy, is_study=True, n_documents=12)
    world.system("lives", lambda instance: instance.predicate.name == LIVES)
    call_command("study", world.track.slug, "reach", tmp_path)
    with (tmp_path / "draws.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    draws = {
        row["name"]: float(row["mean"])
        for row in rows
        if row["distribution"] == "instance" and row["what"] == "draws"
    }
    assert draws[LIVES] == pytest.approx(1000)
    assert (tmp_path / "entities.svg").read_text(encoding="utf-8").count("<circle") > 0


def test_pooling_needs_two_judged_teams(toy: Toy, tmp_path: Path) -> None:
    world = World(toy, is_study=True, n_documents=12)
    with pytest.raises(CommandError, match="two teams"):
        call_command("study", world.track.slug, "pooling", tmp_path)
    with pytest.raises(CommandError, match="no track"):
        call_command("study", "nowhere", "pooling", tmp_path)
