"""What is shown and cited elsewhere: BibTeX of a board or a score, and CITATION.cff."""

from __future__ import annotations

from kbpo.evaluation.models import Evaluation
from kbpo.releases.datasheet import as_cff

SERVICE = "KBP Online"
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
