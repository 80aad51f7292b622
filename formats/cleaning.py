"""Cleans texts: removes invisible characters, and characters that would break the layout of
a page.
"""

import re
from dataclasses import dataclass
from unicodedata import category, normalize

BLANK = "\u2800"  # of Braille, which is no white space
VARIED = tuple("#*0123456789©®")  # signs of ASCII and Latin-1 that are emoji, too

_BIDIRECTIONAL = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
# Tags, which spell words that only programs read, stay in the flags that are written with them.
_FLAG = "\U0001f3f4[\U000e0030-\U000e007a]{3,6}\U000e007f"
_INVISIBLE = re.compile(
    f"({_FLAG})|[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180e\u200b\u2060-\u2065\u206a-\u206f\u3164\ufeff"
    "\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e00ff"
    "\U000e01f0-\U000e0fff]"
)
# One chooses how the character before it looks; more of them spell what only programs read.
_SELECTORS = re.compile("[\u180b-\u180d\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef]")
_JOINERS = re.compile("[\u200c\u200d]")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff]")
_MARKUP = re.compile(
    r"</?[A-Za-z][A-Za-z0-9]*(?:\s[^<>]*)?/?>|<!--|&(?:#\d+|#x[0-9a-fA-F]+|[a-z]+);"
)


@dataclass(frozen=True, slots=True)
class Cleaned:
    """A text without invisible characters, and the numbers of removed characters."""

    text: str
    bidirectional: int
    """Number of removed marks that change the direction of text"""
    invisible: int
    """Number of removed characters without width"""
    controls: int
    """Number of control characters; a text with any must not be used"""
    markup: str
    """The first piece of markup; empty if there is none"""


def clean_text(text: str) -> Cleaned:
    """Return the text in composed Unicode, without invisible characters, outer white space and
    trailing blanks.

    Joiners (U+200C, U+200D) are kept between letters or symbols that need them, as in Persian or in
    emoji; one variation selector is kept after a character that has variants. A text of blanks and
    marks only becomes empty.
    """
    plain = normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n"))
    plain, turned = _BIDIRECTIONAL.subn("", plain)
    shown = _INVISIBLE.sub(lambda match: match[1] or "", plain)
    varied = _SELECTORS.sub(
        lambda match: match[0] if _is_valid_variation_selector(match) else "", shown
    )
    joined = _JOINERS.sub(lambda match: match[0] if _is_valid_joiner(match) else "", varied)
    hidden = len(plain) - len(joined)
    plain = "\n".join(line.rstrip() for line in joined.split("\n")).strip()
    # What was removed may have stood between a letter and its accent.
    plain = normalize("NFC", plain) if any(map(_is_visible, plain)) else ""
    tag = _MARKUP.search(plain)
    return Cleaned(plain, turned, hidden, len(_CONTROL.findall(plain)), tag[0] if tag else "")


def _is_visible(letter: str) -> bool:
    kind = category(letter)
    return letter != BLANK and kind[0] not in "MZ" and kind not in ("Cc", "Cf")


def _is_valid_variation_selector(match: re.Match[str]) -> bool:
    before = match.string[: match.start()][-1:]
    if match[0] > "\uffff":
        return before > "\u33ff" and category(before) == "Lo"
    return (before > "\u02ff" or before in VARIED) and _is_visible(before)


def _is_valid_joiner(match: re.Match[str]) -> bool:
    text = match.string
    before, after = text[: match.start()][-1:], text[match.end() :][:1]
    return bool(before and after) and all(
        ord(side) > 0x2FF and category(side)[0] in "LMS" for side in (before, after)
    )
