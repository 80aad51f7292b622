"""A document is shown as it is: everything escaped, marks nested, no character lost."""

import random
from html.parser import HTMLParser

import pytest

from kbpo.web.components.viewer import Span, document_html

TEXT = 'Ada <b>met</b> "Bo" & Cy. They work at R&D Ltd.'


class Checker(HTMLParser):
    """Fails when tags cross; collects the text."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def shown(html: str) -> str:
    checker = Checker()
    checker.feed(html)
    assert not checker.open
    return checker.text


def test_the_text_is_escaped_and_whole():
    html = document_html(TEXT)
    assert "<b>" not in html and "&lt;b&gt;" in html
    assert shown(html) == TEXT


def test_roles_have_their_marks_and_letters():
    html = document_html(
        TEXT, [Span(0, 3, "subject"), Span(16, 18, "object"), Span(0, 25, "provenance")]
    )
    assert '<mark class="m-subject" data-badge="A">Ada</mark>' in html
    assert html.startswith('<div class="doc has-prov"><span class="prov">')
    assert shown(html) == TEXT


def test_attributes_are_escaped():
    html = document_html(
        TEXT,
        [Span(0, 3, "entity", badge='"><script>', type='"><script>', key='"><script>', number=1)],
    )
    assert "<script" not in html and 'class="m-entity t-misc"' in html


def test_marks_that_cross_are_cut_and_only_the_end_carries_the_letter():
    html = document_html("0123456789", [Span(0, 6, "subject"), Span(4, 9, "object")])
    assert html.count("m-object") == 2 and html.count('data-badge="B"') == 1
    assert shown(html) == "0123456789"


def test_any_marks_nest_and_lose_nothing():
    rng = random.Random(7)
    for _ in range(300):
        spans = []
        for _ in range(rng.randrange(7)):
            start = rng.randrange(len(TEXT))
            role = rng.choice(["subject", "object", "provenance", "other", "entity"])
            spans.append(Span(start, rng.randint(start + 1, len(TEXT)), role))
        html = document_html(TEXT, spans)
        assert shown(html) == TEXT


@pytest.mark.parametrize(("start", "end"), [(5, 5), (-1, 3), (0, 1000)])
def test_a_span_that_does_not_fit_is_refused(start, end):
    with pytest.raises(ValueError, match=r"span"):
        document_html(TEXT, [Span(start, end, "subject")])
