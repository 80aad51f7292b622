"""Splits texts into tokens and sentences, by regular expressions and a short list of abbreviations.

Of the libraries that need no model, sentencex 1.0 finds a little fewer of the sentences of
Re-DocRED (3,779 of 3,966; these rules 3,802) and panics on a line separator after an initial; spaCy
3.8 splits after fewer abbreviations and brings 300 MB.
"""

import re

from formats.words import MARKS, WORD

Span = tuple[int, int]


def _read_words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ABBREVIATIONS = _read_words("""
    mr mrs ms dr prof rev hon st sen rep gov gen col maj capt lt sgt cmdr adm pres supt sr jr vs
    etc inc ltd co corp bros dept univ assn no nos vol fig pp ed eds al approx ca cf est jan feb
    mar apr jun jul aug sep sept oct nov dec mon tue wed thu fri sat sun mt ft ave blvd rd e.g i.e
    a.m p.m u.s u.k u.n d.c ph.d
    """)
# After these a capital may begin a sentence: what follows decides.
_MAY_END = _read_words("inc ltd co corp jr sr etc a.m p.m u.s u.k u.n d.c ph.d bros al")
_STARTERS = _read_words("""
    a an the he she it they we i you his her its their our this that these those there in on at by
    for from with as but and or if when while after before since although however meanwhile who
    what why how no yes some many most both each one two according
    """)
_BREAK = re.compile(
    r"""(?:(?P<stop>[.!?…]+)["'”’»)\]]*(?=\s|$)|[。！？]+[”’」』）]*)|\n[^\S\n]*\n"""
)
_NEXT = re.compile(r"""\s*(?P<open>["'“‘«(\[]*)(?P<word>\w+)?""")
_LAST_WORD = re.compile(r"[\w.'’&-]*\Z")

_TOKEN = re.compile(
    rf"""
    (?:[^\W\d_]\.){{2,}}                        # U.S., e.g.
  | [$€£¥]?\d+(?:[.,:/-]\d+)*%?                 # 1,200.50  10:30  2013-03-17  5%
  | (?:Mr|Mrs|Ms|Dr|St|Jr|Sr|Prof|Gen|Sen|Rep|Gov|Lt|Col|Capt|Inc|Corp|Ltd|Co|No)\.
  | \w+(?=n['’]t\b)                             # did|n't
  | n['’]t\b
  | ['’](?:s|re|ve|ll|d|m)\b                    # 's
  | {WORD}(?:[-‐‑&]{WORD})*                      # words, with hyphens
  | \.{{2,}} | -{{2,}}
  | \S[{MARKS}]*
    """,
    re.VERBOSE | re.IGNORECASE,
)


def token_spans(text: str, begin: int = 0, end: int | None = None) -> list[Span]:
    """Return the spans of the tokens of a text, or of the part between begin and end."""
    return [
        match.span() for match in _TOKEN.finditer(text, begin, len(text) if end is None else end)
    ]


def sentence_spans(text: str) -> list[Span]:
    """Return the spans of the sentences of a text, without the white space between them."""
    spans: list[Span] = []
    begin = 0
    for match in _BREAK.finditer(text):
        if match.group("stop") is None or _ends_sentence(text, begin, match):
            _append_sentence(spans, text, begin, match.end())
            begin = match.end()
    _append_sentence(spans, text, begin, len(text))
    return spans


def _append_sentence(spans: list[Span], text: str, begin: int, end: int) -> None:
    while begin < end and text[begin].isspace():
        begin += 1
    while end > begin and text[end - 1].isspace():
        end -= 1
    if begin < end:
        spans.append((begin, end))


def _ends_sentence(text: str, begin: int, match: re.Match[str]) -> bool:
    """Return whether a sentence ends at this full stop, judged by the word before and the text
    after the stop.
    """
    following = _NEXT.match(text, match.end())
    word = following.group("word") if following else None
    if following is None or (word is None and not following.group("open")):
        return True
    if word is not None and word[0].islower():
        # “What?” he said; and after a full stop a lower-case word goes on, unless it is a name such
        # as iPhone.
        return word.lower() != word
    if match.group("stop") != ".":
        return True
    end = match.start("stop")
    found = _LAST_WORD.search(text, max(begin, end - 30), end)
    before = found.group().lstrip("'’-&.") if found else ""
    if len(before) == 1 and before.isalpha() and before.isupper():
        return False  # an initial: J. Smith
    folded = before.lower()
    if folded in _MAY_END:
        return bool(word) and word is not None and word.lower() in _STARTERS
    if folded == "no":
        return not (word is not None and word[0].isdigit())
    return folded not in _ABBREVIATIONS
