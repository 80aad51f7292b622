"""Somebody without a checkout installs the client from the service's own address."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse

from kbpo.web.public.client import install_command, wheel
from tests.conftest import Toy

ROOT = Path(__file__).resolve().parents[2]


def test_pip_installs_what_the_service_offers_and_it_needs_no_checkout(tmp_path: Path) -> None:
    name, content = wheel()
    (tmp_path / name).write_bytes(Client().get(reverse("client-file", args=[name])).content)
    assert (tmp_path / name).read_bytes() == content
    pip = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--quiet"]
    subprocess.run([*pip, "--target", tmp_path / "site", tmp_path / name], check=True, cwd=tmp_path)
    installed = {path.relative_to(tmp_path / "site") for path in tmp_path.glob("site/*/**/*.*")}
    for package in ("estimators", "formats", "scoring"):
        for file in ROOT.glob(f"{package}/*.py"):
            assert file.relative_to(ROOT) in installed
    assert Path("formats/schemas/tac_kbp.json") in installed
    script = "import formats.corpus, scoring.rescore, kbpo_client; print(formats.__file__)"
    env = {"PYTHONPATH": str(tmp_path / "site"), "PATH": "/usr/bin:/bin"}
    told = subprocess.run(
        [sys.executable, "-c", script],
        env=env,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.startswith(str(tmp_path / "site"))
    kbpo = subprocess.run(
        [sys.executable, tmp_path / "site" / "bin" / "kbpo", "--help"],
        env=env,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "validate" in kbpo.stdout


@pytest.mark.django_db
def test_its_address_is_on_the_pages_and_another_versions_says_where_it_is(toy: Toy) -> None:
    somebody = Client()
    for page in (reverse("track", args=["toy"]), reverse("api")):
        assert install_command() in somebody.get(page).content.decode(), page
    assert somebody.get("/client/").headers["Location"] == f"/client/{wheel()[0]}"
    old = somebody.get("/client/kbpo_client-0.0.1-py3-none-any.whl")
    assert old.status_code == 404 and wheel()[0] in old.content.decode()
    told = (ROOT / "client/README.md").read_text()
    assert re.findall(r"/client/(\S+\.whl)", told) == [wheel()[0]]


def test_what_pip_builds_from_a_checkout_is_neither_kept_nor_typed() -> None:
    """`pip install ./client` leaves copies of our packages, which mypy would find twice."""
    built = "client/build/lib/formats/corpus.py"
    excluded = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]["exclude"]
    assert any(re.search(one, built) for one in excluded)
    assert not any(re.search(one, "client/kbpo_client/commands/upload.py") for one in excluded)
    assert "client/build/" in (ROOT / ".gitignore").read_text().splitlines()
