"""Template tags: what their README shows exists and renders, links lead on, and what comes from
outside is escaped.
"""

import re
from pathlib import Path

import pytest
from django.http import HttpResponse
from django.template import Context, Template
from django.template.loader import render_to_string
from django.test import RequestFactory
from django.urls import path

from kbpo.web.templatetags.kbpo import register
from tests.test.web import component_samples as samples

README = Path(__file__).resolve().parents[3] / "templates" / "components" / "README.md"
EVIL = '"><script>alert(1)</script>'


def page(request):
    return HttpResponse()


urlpatterns = [
    path("", page, name="home"),
    path("submit/", page, name="submit"),
    path("in/", page, name="login"),
]


def rendered(source: str, **context: object) -> str:
    return Template("{% load kbpo %}" + source).render(Context(context))


def test_the_readme_names_every_tag_and_every_filter():
    text = README.read_text()
    missing = [name for name in register.tags if not re.search(rf"{{% {name}\b", text)]
    missing += [name for name in register.filters if f"|{name}" not in text]
    assert not missing


@pytest.mark.parametrize(
    "source",
    [
        "{% bar interval axis name=evil %}",
        "{% document evil %}",
        "{% mention_chip evil evil 1 %}",
        "{% problem_list problems %}",
        "{% journey stages %}",
        "{% switch evil options %}",
        "{% choice evil evil evil key=evil note=evil state=evil %}",
        "{% step evil evil note=evil %}",
        "{% tag evil evil %}",
        "{% empty evil evil evil %}",
        "{% paid_bar 0.5 evil evil %}",
        "{% precision_recall_plot points evil %}",
    ],
)
def test_what_comes_from_outside_is_escaped(source):
    values = samples.context()
    values |= {
        "axis": values["f1_axis"],
        "interval": samples.around(0.5, 100),
        "evil": EVIL,
        "problems": [
            {
                "line": EVIL,
                "severity": "error",
                "code": EVIL,
                "text": EVIL,
                "line_text": EVIL,
                "culprit_begin": 2,
                "culprit_end": 9,
            }
        ],
        "stages": [{"name": EVIL, "state": "failed", "of": EVIL, "note": EVIL, "retry_url": EVIL}],
        "options": [{"url": EVIL, "text": EVIL}],
        "points": [
            samples.Point(EVIL, samples.around(0.5, 100), samples.around(0.5, 100), first=True)
        ],
    }
    html = rendered(source, **values)
    assert "<script" not in html and "alert(1)" in html


@pytest.mark.urls(__name__)
def test_the_frame_links_only_to_pages_that_exist():
    html = render_to_string("base.html", request=RequestFactory().get("/"))
    assert 'href="/submit/"' in html and 'href="/in/"' in html
    assert ">Compare<" not in html and ">Help<" not in html


@pytest.mark.urls(__name__)
@pytest.mark.parametrize("name", ["base.html", "base_annotate.html", "base_admin.html"])
def test_every_frame_has_a_way_past_its_head_and_one_main_part(name):
    html = render_to_string(name, samples.context(), request=RequestFactory().get("/"))
    assert '<a class="skip" href="#content">' in html and html.count('id="content"') == 1
    assert 'name="viewport"' in html and '<html lang="en">' in html


@pytest.mark.parametrize("name", sorted(set(register.filters) - {"pages", "words"}))
def test_every_filter_writes_a_dash_where_there_is_nothing(name):
    assert rendered(f"{{{{ nothing|{name} }}}}", nothing=None) == "–"


def test_a_verdict_is_told_with_a_sign_and_a_word_also_in_part() -> None:
    said = {
        "True": "✓ right",
        "False": "✗ wrong",
        "None": "not judged",
        "None True": "judged",
        "None False 'crowd'": "judged in part",
    }
    for values, words in said.items():
        html = Template(f"{{% load kbpo %}}{{% verdict {values} %}}").render(Context())
        assert re.sub(r"<[^>]*>", "", html).strip() == words


def test_no_tag_of_a_template_is_broken_over_two_lines() -> None:
    """Django prints such a tag as text."""
    broken = re.compile(r"\{\{[^}]*\n[^}]*\}\}|\{%[^%]*\n[^%]*%\}")
    templates = README.parents[1].rglob("*.html")
    assert [str(file) for file in templates if broken.search(file.read_text())] == []
