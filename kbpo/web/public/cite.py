"""What is shown and cited elsewhere: BibTeX of a board or a score, CITATION.cff, and a badge."""

from __future__ import annotations

from html import escape

from kbpo.evaluation.models import Evaluation
from kbpo.releases.datasheet import as_cff

SERVICE = "KBP Online"
_IN_LATEX = {letter: f"\\{letter}" for letter in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}
LETTER = 6.6
"""Width of a letter of the badge, on average"""


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


def badge(label: str, value: str) -> str:
    """Return an SVG: a label and a value side by side, readable on light and dark pages."""
    left, right = (round(LETTER * len(text)) + 16 for text in (label, value))
    width = left + right
    alt = escape(f"{label}: {value}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="22" role="img"'
        f' aria-label="{alt}"><title>{alt}</title>'
        f'<rect width="{width}" height="22" rx="4" fill="#3a3f45"/>'
        f'<path d="M{left} 0h{right - 4}a4 4 0 0 1 4 4v14a4 4 0 0 1-4 4H{left}z" fill="#1c58b0"/>'
        '<g fill="#ffffff" font-family="system-ui,sans-serif" font-size="12" text-anchor="middle">'
        f'<text x="{left / 2:g}" y="15">{escape(label)}</text>'
        f'<text x="{left + right / 2:g}" y="15" font-weight="600">{escape(value)}</text></g></svg>'
    )
