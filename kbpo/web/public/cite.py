"""BibTeX entries of boards and scores, and the frame that shows a board elsewhere."""

from __future__ import annotations

from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import escape

from kbpo.evaluation.leaderboard import Board
from kbpo.evaluation.models import Evaluation

SERVICE = "KBP Online"
_IN_LATEX = {letter: f"\\{letter}" for letter in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}


def bibtex(
    key: str, title: str, author: str, evaluation: Evaluation, url: str, figure: str = ""
) -> str:
    """Return a BibTeX entry with the evaluation, its day and its address, and the cited figure if
    one is given.
    """
    made = evaluation.made_at
    note = f"Evaluation {evaluation.number} of {made:%Y-%m-%d}"
    fields = {
        "title": f"{{{_latex(title)}}}",
        "author": f"{{{_latex(author or SERVICE)}}}",
        "howpublished": _latex(SERVICE),
        "year": f"{made:%Y}",
        "note": _latex(f"{note}: {figure}" if figure else note),
        "url": url,
    }
    lines = [f"  {name:<12} = {{{value}}}" for name, value in fields.items()]
    return f"@misc{{{key},\n" + ",\n".join(lines) + "\n}"


def _latex(text: str) -> str:
    """Return a text with LaTeX's special characters escaped."""
    return "".join(_IN_LATEX.get(letter, letter) for letter in text)


def cite_board(request: HttpRequest, shown: Board) -> dict[str, str]:
    """Return the citation of a board and its frame; empty before the first evaluation."""
    if shown.evaluation is None:
        return {}
    slug, evaluation = shown.track.slug, shown.evaluation
    permalink = request.build_absolute_uri(reverse("evaluation", args=[slug, evaluation.number]))
    frame = request.build_absolute_uri(reverse("board-embed", args=[slug]))
    title = f"Leaderboard of {shown.track.name}"
    return {
        "permalink": permalink,
        "bibtex": bibtex(f"{slug}-{evaluation.number}", title, "", evaluation, permalink),
        "embed": (
            f'<iframe src="{escape(frame)}" title="{escape(title)}" width="640" height="420">'
            "</iframe>"
        ),
    }
