"""Manages the terms: their versions, and who agreed to which.

A version never changes, since people agreed to it. The versions that ship with the service are the
files `terms_1.txt` and so on; a change is a new file, and everybody is asked to agree again.
Versions that an admin publishes take precedence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from django.db.models import Subquery
from django.db.models.functions import Coalesce

from annotation.models import Worker
from annotation.platforms.registry import local_platform_names
from annotation.workers.models import Consent, Terms
from annotation.workers.payout import payout_schedule
from annotation.workers.worker import belongs_to_worker_filter

SHIPPED = (1, 2, 3, 4, 5)
"""The versions that ship with the service"""
POOL, MARKETPLACE = " (pool)", " (marketplace)"
"""Endings of headings whose sections are only for annotators with an account here, or only for
workers of marketplaces
"""
PAYOUTS = "{payouts}"
"""Placeholder for the schedule and method of payouts"""
LONGEST = 20_000


class StaleTerms(Exception):
    """Raised if the terms changed while somebody read them; the text is a sentence for the
    reader.
    """


@dataclass(frozen=True)
class Text:
    """A version of the terms: sections with a heading and paragraphs."""

    version: int
    text: str

    def parts(self, *, marketplace: bool = False) -> list[tuple[str, list[str]]]:
        """Return the sections for annotators with an account, or for workers of a marketplace, as
        (heading, paragraphs).
        """
        wanted, other = (MARKETPLACE, POOL) if marketplace else (POOL, MARKETPLACE)
        sections = []
        for block in self.text.split("\n\n"):
            heading, *lines = block.strip().splitlines() or [""]
            if not heading or heading.endswith(other):
                continue
            filled = [line.replace(PAYOUTS, payout_schedule().sentence()) for line in lines]
            sections.append((heading.removesuffix(wanted), filled))
        return sections


def consent_sections(worker: Worker | None, text: Text) -> list[tuple[str, list[str]]]:
    """Return the sections of the terms for a worker; without one, those for annotators with an
    account.
    """
    at_marketplace = worker is not None and worker.platform not in local_platform_names()
    return text.parts(marketplace=at_marketplace)


def current_terms() -> Text:
    """Return the current version of the terms."""
    latest = Terms.objects.order_by("-version").first()
    return Text(latest.version, latest.text) if latest else _shipped_terms(SHIPPED[-1])


def terms_version(number: int) -> Text | None:
    """Return a version of the terms; None if there is none."""
    row = Terms.objects.filter(version=number).first()
    if row is not None:
        return Text(row.version, row.text)
    return _shipped_terms(number) if number in SHIPPED else None


def _shipped_terms(number: int) -> Text:
    return Text(number, Path(__file__).with_name(f"terms_{number}.txt").read_text(encoding="utf-8"))


def has_consented(worker: Worker, assignment: str = "") -> bool:
    """Return whether a worker agreed to the current terms; for the assignment that they hold, if
    there is one.
    """
    latest = Terms.objects.order_by("-version").values("version")[:1]
    consents = Consent.objects.filter(version=Coalesce(Subquery(latest), SHIPPED[-1]))
    return consents.filter(belongs_to_worker_filter(assignment), worker=worker).exists()


def store_consent(worker: Worker, agreed: int, assignment: str = "") -> Consent:
    """Store the consent to a version, once, and return it. Raises StaleTerms if the version is not
    current.
    """
    holds = current_terms().version
    if agreed != holds:
        raise StaleTerms(
            f"The terms changed while you read: version {holds} holds now. Please read it again."
        )
    return Consent.objects.get_or_create(worker=worker, version=holds, assignment=assignment)[0]


def store_consent_form(worker: Worker, form_fields: Mapping[str, str], assignment: str = "") -> str:
    """Store the consent that a form sends, and return why it was not stored; empty if it was."""
    if not form_fields.get("agree"):
        return "Tick the box if you agree. Without it we cannot offer you questions."
    try:
        store_consent(worker, int(form_fields.get("version", "0")), assignment)
    except StaleTerms as stale:
        return str(stale)
    except ValueError:
        return "The form did not arrive as it was sent. Please agree again."
    return ""
