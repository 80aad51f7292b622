"""Somebody without a checkout installs the client from the service's own address."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from django.test import Client
from django.urls import reverse

from kbpo.web.public.prose import build_wheel

ROOT = Path(__file__).resolve().parents[3]


def test_pip_installs_what_the_service_offers_and_it_needs_no_checkout(tmp_path: Path) -> None:
    name, content = build_wheel()
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
