"""What is shown and cited elsewhere: BibTeX of a board or a score, and CITATION.cff."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.html import escape

from kbpo.evaluation.leaderboard import Board, NoBoard, evaluation_of
from kbpo.evaluation.models import Evaluation
from kbpo.releases.datasheet import as_cff
from kbpo.tracks.models import Track

SERVICE = "KBP Online"
LEADERBOARD = "Leaderboard of {}"
"""How a board is called where it is cited"""
_IN_LATEX = {letter: f"\\{letter}" for letter in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}


def bibtex(
    key: str, title: str, author: str, evaluation: Evaluation, url: str, figure: str = ""
) -> str:
    """Return an entry that names the evaluation, its day and its address; with the figure that is
    cited, if it is one.
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
    """Return a text as LaTeX prints it."""
    return "".join(_IN_LATEX.get(letter, letter) for letter in text)


def cff(title: str, evaluation: Evaluation, url: str) -> str:
    """Return a CITATION.cff that names the evaluation, its day and its address."""
    return as_cff(
        {
            "cff-version": "1.2.0",
            "message": "If you rely on these scores, please cite the evaluation.",
            "type": "dataset",
            "title": title,
            "authors": [{"name": SERVICE}],
            "version": f"evaluation {evaluation.number}",
            "date-released": f"{evaluation.made_at:%Y-%m-%d}",
            "url": url,
        }
    )


def of_board(request: HttpRequest, shown: Board) -> dict[str, str]:
    """How a board is cited and shown elsewhere; empty before there is one."""
    if shown.evaluation is None:
        return {}
    slug, evaluation = shown.track.slug, shown.evaluation
    permalink = request.build_absolute_uri(reverse("evaluation", args=[slug, evaluation.number]))
    frame = request.build_absolute_uri(reverse("board-embed", args=[slug]))
    title = LEADERBOARD.format(shown.track.name)
    return {
        "permalink": permalink,
        "cff": reverse("evaluation-cff", args=[slug, evaluation.number]),
        "bibtex": bibtex(f"{slug}-{evaluation.number}", title, "", evaluation, permalink),
        "embed": (
            f'<iframe src="{escape(frame)}" title="{escape(title)}" width="640" height="420">'
            "</iframe>"
        ),
    }


def as_cff_file(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """How the board of an evaluation is cited, as CITATION.cff."""
    track = get_object_or_404(Track.objects.exclude(status="draft"), slug=slug)
    try:
        evaluation = evaluation_of(track, number)
    except NoBoard as problem:
        raise Http404(str(problem)) from problem
    permalink = request.build_absolute_uri(reverse("evaluation", args=[slug, number]))
    text = cff(LEADERBOARD.format(track.name), evaluation, permalink)
    headers = {"Content-Disposition": 'attachment; filename="CITATION.cff"'}
    return HttpResponse(f"{text}\n", content_type="application/yaml", headers=headers)
