"""The colours keep their promises: every pair of the contrast table, computed from the style sheet
itself.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
STATIC = ROOT / "static"
TOKENS = (STATIC / "css" / "tokens.css").read_text()

TEXT, EDGE = 4.5, 3.0
# foreground, background, what it must reach in light and in dark
PAIRS = [
    ("ink", "bg", TEXT),
    ("ink-2", "bg", TEXT),
    ("ink-3", "bg", TEXT),
    ("ink-3", "sunken", TEXT),
    ("ink-3", "a-soft", TEXT),
    ("ink-3", "surface", TEXT),
    ("a", "surface", TEXT),
    ("on-a", "a", TEXT),
    ("on-a", "a-ink", TEXT),
    ("a-ink", "a-soft", TEXT),
    ("b-ink", "b-soft", TEXT),
    ("good", "good-soft", TEXT),
    ("bad", "bad-soft", TEXT),
    ("warn", "warn-soft", TEXT),
    ("surface", "bad", TEXT),
    ("bad", "sunken", TEXT),
    ("ink-3", "prov", TEXT),
    ("ink-2", "sunken", TEXT),
    ("ink-3", "bad-soft", TEXT),
    ("edge", "bg", EDGE),
    ("edge", "surface", EDGE),
    ("a", "a-band", EDGE),
    ("a", "bg", EDGE),
    ("b", "surface", EDGE),
]


def tokens(block: str) -> dict[str, str]:
    return dict(re.findall(r"--([a-z0-9-]+):\s*(#[0-9a-f]{6})\b", block))


def schemes() -> dict[str, dict[str, str]]:
    light, dark = TOKENS.split("@media screen and (prefers-color-scheme: dark)")
    return {"light": tokens(light), "dark": tokens(dark)}


def luminance(colour: str) -> float:
    """Relative luminance by WCAG 2."""
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels
    ]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("front", "back", "least"), PAIRS)
def test_every_pair_is_legible(scheme, front, back, least):
    colours = schemes()[scheme]
    ratio = contrast(colours[front], colours[back])
    assert ratio >= least, f"{front} on {back} is {ratio:.2f} in {scheme}, needs {least}"


def test_both_schemes_give_a_colour_to_every_token():
    light, dark = schemes().values()
    assert light.keys() == dark.keys()


@pytest.mark.parametrize(
    "sheet", sorted((STATIC / "css").glob("*.css")), ids=lambda path: path.name
)
def test_no_sheet_but_the_tokens_names_a_colour(sheet):
    if sheet.name == "tokens.css":
        return
    outside_print = sheet.read_text().split("@media print")[0]
    named = re.findall(r"#[0-9a-fA-F]{3,8}\b(?=[^{]*;)", outside_print)
    assert not named, f"{sheet.name} should use tokens instead of {named}"


@pytest.mark.parametrize(
    "sheet", sorted((STATIC / "css").glob("*.css")), ids=lambda path: path.name
)
def test_every_property_that_is_used_is_defined(sheet):
    everywhere = "".join(path.read_text() for path in (STATIC / "css").glob("*.css"))
    defined = set(re.findall(r"(--[a-z0-9-]+)\s*:", everywhere))
    # A second value in var() is what holds where no rule has set the property.
    used = set(re.findall(r"var\((--[a-z0-9-]+)\)", sheet.read_text()))
    assert used <= defined


def test_nothing_comes_from_elsewhere():
    for path in [*STATIC.rglob("*.css"), *STATIC.rglob("*.js")]:
        assert not re.search(r"(?:url\(|from |import )[\"']?(?:https?:)?//", path.read_text()), path


def test_the_style_of_any_page_and_the_first_font_leave_room_under_the_page_weight():
    css = STATIC / "css"
    pages = (ROOT / "templates").rglob("*.html")
    loaded = [set(re.findall(r"css/([a-z]+\.css)", page.read_text())) for page in pages]
    on_all = set(re.findall(r"css/([a-z]+\.css)", (ROOT / "templates/base.html").read_text()))
    assert on_all and set().union(*loaded) == {path.name for path in css.glob("*.css")}
    sheets = max(sum((css / one).stat().st_size for one in on_all | own) for own in loaded)
    fonts = [
        STATIC / "fonts" / name
        for name in ("source-sans-3-latin.woff2", "source-sans-3-latin-italic.woff2")
    ]
    assert sheets + sum(path.stat().st_size for path in fonts) < 120_000
    assert (STATIC / "fonts" / "OFL.txt").read_text().count("SIL OPEN FONT LICENSE")
