"""Texts of a release: its description, what it leaves out, and how to use and cite it."""

from __future__ import annotations

import json
from typing import Any

from django.conf import settings

from kbpo.releases.parquet import WITHOUT
from kbpo.tracks.models import Track

LICENCE = """\
Judgments, draws, estimates and the other tables of this release may be used by anybody for any
purpose under the Creative Commons Attribution 4.0 International licence (CC BY 4.0):
https://creativecommons.org/licenses/by/4.0/legalcode

The texts that were judged are not part of this release. Their licence is in release.json, under
"corpus".
"""

TABLES = {
    "systems": (
        "the runs; what was withdrawn or is private has no name, and is here since draws rest on it"
    ),
    "targets": "what people are asked about, where it lies, and by which chances it came in",
    "instances": (
        "what the runs predict, with the model's guess, and the fact that it is for recall"
    ),
    "predictions": "which run predicts what, its confidence, and its probability to be drawn",
    "labels": "what holds of everything that was judged, under each criterion: 1, 0, or unknown",
    "slices": "the parts of the pool that have numbers of their own; instances name theirs",
    "draws": "the history of π: what each batch set for each target, and what it drew",
    "documents": "documents that people read in full, with their probability",
    "facts": "the true facts that were found in them",
    "checks": "what experts could check: by which chance in each round, and whether they did",
    "checked": "what experts said of what they checked; it corrects numbers, and is no label",
    "ratings": "single ratings of texts, by codes of those who gave them",
    "metrics": "what metrics and judges say, where the model learns from them",
    "answers": "single answers of people, under codes",
    "estimates": "every number of the board, with its intervals",
}


def datasheet_markdown(track: Track, metadata: dict[str, Any], omitted: int) -> str:
    """Return the datasheet of a release as Markdown, with the number of omitted answers."""
    rows, corpus = metadata["rows"], metadata["corpus"]
    listed = [
        f"| `{name}.jsonl` | {rows[name]:,} | {meaning} |" for name, meaning in TABLES.items()
    ]
    return "\n".join(
        [
            f"# {track.name}: a release",
            "",
            track.description.strip() or "Its organisers gave no description.",
            "",
            "## What it is",
            "",
            f"All that the board of this track rests on, as it stood on {metadata['made_at'][:10]},"
            f" evaluation {metadata['board']['evaluation']}, made by version"
            f" {metadata['versions']['service']} of the service.",
            "`kbpo rescore` computes the board from these files, without a connection, and names"
            " what differs.",
            "",
            "| file | rows | what a row is |",
            "|---|--:|---|",
            *listed,
            "",
            "Every row ends with `check`, the first 16 digits of the SHA-256 of its other fields"
            " (JSON, sorted keys, no spaces). `SHA256SUMS` holds the files. "
            + _parquet_sentence(metadata),
            "What is not known is null. So is the variance of an estimate that has no bound, since"
            " something that the run predicts could not have been asked: its intervals are all"
            " that the number may be.",
            "",
            "## How it came about",
            "",
            "Runs were uploaded one after the other. Of each a random sample was judged by people;"
            " every judgment counts for all runs, divided by the probability π that it was asked."
            f" Design: {track.sampling_description()}."
            f" Guaranteed was the number under `{track.distribution}`, criterion"
            f" `{track.criterion}`, to ±{track.target_half_width} at {track.confidence_level:.0%}.",
            "",
            "## People",
            "",
            "Those who answered were paid for each answer, and had agreed to the terms in"
            " `consent.md`. They stand here under codes that were drawn for this release alone, in"
            " no order, and are kept nowhere; an empty code is somebody who has had themselves"
            " erased since.",
            "Whoever rated texts and was erased, or agreed to no terms, has another code"
            " for every rating: nothing tells that they are one person's, and intervals that allow"
            " for people (method `judges`) are then printed and not recomputed.",
            "Of the time of an answer only the day is told, and what people remarked"
            " is left out."
            + (
                f" {omitted:,} answers of people who agreed to no terms are left out;"
                " what was decided with them is in the labels."
                if omitted
                else ""
            ),
            "",
            "## Runs without a name",
            "",
            "Private and withdrawn runs stand here under a number, without team, name and"
            " description; anonymous ones under the number of the board. Of withdrawn runs there is"
            " what was judged; what only they predict is left out, but for numbers that others’"
            " estimates need: the overlap of draws with replacement, and guesses for recall. What"
            " those are about is null.",
            "",
            "## What is not in it",
            "",
            f"The texts: {corpus['name']}, {corpus['documents']:,} documents, licence:"
            f" {corpus['licence'] or 'not stated'}. Places are offsets in characters into the"
            f" document with that key; the SHA-256 of the loaded file is"
            f" `{corpus['digest'] or 'unknown'}`.",
            "The random numbers of targets: other tracks on these texts share them. What stands as"
            " `u` lies between the same thresholds.",
            "The model is not fitted anew: its guesses are as they were. They narrow intervals, and"
            " bias nothing.",
            "",
            "## Licence",
            "",
            "CC BY 4.0, see `LICENSE.txt`.",
        ]
    )


def citation_cff(track: Track, metadata: dict[str, Any]) -> str:
    """Return the citation of a release as CITATION.cff: the track, the evaluation and its
    address.
    """
    number = metadata["board"]["evaluation"]
    fields = {
        "cff-version": "1.2.0",
        "message": "If you use this release, please cite it.",
        "type": "dataset",
        "title": f"{track.name}: judgments, draws and scores",
        "authors": [{"name": "KBP Online"}],
        "version": f"evaluation {number}",
        "date-released": metadata["made_at"][:10],
        "license": "CC-BY-4.0",
        "url": f"{settings.SITE_URL.rstrip('/')}/tracks/{track.slug}/evaluations/{number}/",
    }
    return format_cff(fields)


def format_cff(fields: dict[str, Any]) -> str:
    """Return the lines of a CITATION.cff. Each value is written as JSON, which is valid YAML for
    any name of a track.
    """
    lines = [f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in fields.items()]
    return "\n".join(lines)


def _parquet_sentence(metadata: dict[str, Any]) -> str:
    """Return a sentence about the Parquet files, or on why there are none."""
    if metadata["versions"]["pyarrow"] is None:
        return WITHOUT
    return "Files of Parquet hold the same rows; what is of several types is JSON in them, as text."
