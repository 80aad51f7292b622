"""Consent to the terms: which version holds, who agreed to it.

A version is one text for ever, since it is what people agreed to. The texts that ship with the
service are files of their own, `terms_1.txt` and on: a change is a new file, and everybody is asked
again. Once an admin has published a version, theirs hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from django.db.models import QuerySet, Subquery
from django.db.models.functions import Coalesce

from annotation.models import Worker
from annotation.platforms.registry import local_names
from annotation.workers.models import Consent, Terms
from annotation.workers.payee import schedule
from annotation.workers.worker import counts

SHIPPED = (1, 2, 3, 4, 5)
"""The versions that ship with the service"""
POOL, MARKETPLACE = " (pool)", " (marketplace)"
"""A heading that ends so is for annotators with an account here, or for workers of marketplaces"""
PAYOUTS = "{payouts}"
"""Stands for when and how is paid, as the rules have it"""
LONGEST = 20_000


class StaleTerms(Exception):
    """Somebody agrees to a version that does not hold any more; the text is a sentence for them."""


@dataclass(frozen=True)
class Text:
    """A version of the terms: parts with a heading and paragraphs."""

    version: int
    text: str

    def parts(self, *, marketplace: bool = False) -> list[tuple[str, list[str]]]:
        """Return every part for annotators with an account here, or for workers of a marketplace:
        its first line, and the lines under it.
        """
        wanted, other = (MARKETPLACE, POOL) if marketplace else (POOL, MARKETPLACE)
        sections = []
        for block in self.text.split("\n\n"):
            heading, *lines = block.strip().splitlines() or [""]
            if not heading or heading.endswith(other):
                continue
            filled = [line.replace(PAYOUTS, schedule().sentence()) for line in lines]
            sections.append((heading.removesuffix(wanted), filled))
        return sections


def parts_for(worker: Worker | None, text: Text) -> list[tuple[str, list[str]]]:
    """Return the sections of the terms that apply to a worker: those for a marketplace or those for
    local annotators. Without a worker, returns those for local annotators.
    """
    at_marketplace = worker is not None and worker.platform not in local_names()
    return text.parts(marketplace=at_marketplace)


def current() -> Text:
    """Return the terms that hold now."""
    latest = Terms.objects.order_by("-version").first()
    return Text(latest.version, latest.text) if latest else _shipped(SHIPPED[-1])


def version(number: int) -> Text | None:
    """Return the terms of that version; None if there was none."""
    row = Terms.objects.filter(version=number).first()
    if row is not None:
        return Text(row.version, row.text)
    return _shipped(number) if number in SHIPPED else None


def _shipped(number: int) -> Text:
    return Text(number, Path(__file__).with_name(f"terms_{number}.txt").read_text(encoding="utf-8"))


def has_consented(worker: Worker, assignment: str = "") -> bool:
    """Return whether a worker agreed to the terms that hold now, with this assignment in hand if
    they have one.
    """
    return _consents_to_current().filter(counts(assignment), worker=worker).exists()


def _consents_to_current() -> QuerySet[Consent]:
    latest = Terms.objects.order_by("-version").values("version")[:1]
    return Consent.objects.filter(version=Coalesce(Subquery(latest), SHIPPED[-1]))


def consent(worker: Worker, agreed: int, assignment: str = "") -> Consent:
    """Return the consent, noted once. Raises StaleTerms if the version that was read is not the one
    that holds.
    """
    holds = current().version
    if agreed != holds:
        raise StaleTerms(
            f"The terms changed while you read: version {holds} holds now. Please read it again."
        )
    return Consent.objects.get_or_create(worker=worker, version=holds, assignment=assignment)[0]


def take(worker: Worker, said: Mapping[str, str], assignment: str = "") -> str:
    """Return why the consent that a form sends was not noted, as a sentence; nothing if it was."""
    if not said.get("agree"):
        return "Tick the box if you agree. Without it we cannot offer you questions."
    try:
        consent(worker, int(said.get("version", "0")), assignment)
    except StaleTerms as stale:
        return str(stale)
    except ValueError:
        return "The form did not arrive as it was sent. Please agree again."
    return ""
