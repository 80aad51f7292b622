"""A text as it is handed in, and as people and metrics see it: cleaned, and presented by a setting.

Cleaning takes away what nobody can see and what would disturb a page; it is always done. Presenting
makes tokenised, lower-cased text of a system look like the text of a person, so that nobody judges
the tokeniser; a track says whether, and its outputs are one target where the text as shown is the
same.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from unicodedata import category, normalize

UNKNOWN = "■"
BLANK = "\u2800"  # of Braille, which is no white space
VARIED = tuple("#*0123456789©®")  # signs of ASCII and Latin-1 that are emoji, too
REACH = 20  # characters before a word that tell whether it begins a sentence

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
_UNKNOWN_TOKEN = re.compile(r"(?<!\S)(?:<unk>|\[unk\]|-unk-|@unk@|unk|<oov>)(?!\S)", re.IGNORECASE)
_BRACKETS = {
    "-lrb-": "(", "-rrb-": ")", "-lsb-": "[", "-rsb-": "]", "-lcb-": "{", "-rcb-": "}",
}  # fmt: skip
_BRACKET = re.compile(r"(?<!\S)-[lr][rsc]b-(?!\S)", re.IGNORECASE)
_CONTRACTION = re.compile(r"(?<=\w) ?(n't|'(?:s|re|ve|ll|d|m))(?!\w)", re.IGNORECASE)
_BLANKS = re.compile(r"[ \t]{2,}")
_BEFORE = re.compile(r"[ \t]+([.,;:!?%)\]}…”’])")
_AFTER = re.compile(r"([(\[{“‘$£€#])[ \t]+")
_QUOTES = re.compile(r'(?<!\S)"(?!\S)|``|\'\'')
# The full stop of “u.s.” ends no sentence, as a rule.
_SENTENCE = re.compile(r"(?:^|(?<!\.\w)[.!?…][\"”’)\]]*\s+)[\"“‘(\[]*([a-z])")
_WORD = re.compile(r"(?<![\w'’])(?:(?:[^\W\d_]\.){2,}|[^\W\d_]+)")


@dataclass(frozen=True, slots=True)
class Cleaned:
    """A text without what nobody can see, and what was there."""

    text: str
    bidirectional: int
    """How many marks that turn the direction were removed."""
    invisible: int
    """How many characters without width were removed."""
    controls: int
    """How many characters no text has; then the text is not to be used."""
    markup: str
    """The first piece of markup, or nothing."""


def clean(text: str) -> Cleaned:
    """Return the text in composed Unicode, without invisible characters, outer white space and
    trailing blanks.

    Joiners (U+200C, U+200D) stay between letters or symbols that need them, as in Persian or in
    emoji, and of variation selectors one behind a character that may look otherwise. A text of
    blanks and marks alone is none.
    """
    plain = normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n"))
    plain, turned = _BIDIRECTIONAL.subn("", plain)
    shown = _INVISIBLE.sub(lambda match: match[1] or "", plain)
    varied = _SELECTORS.sub(lambda match: match[0] if _varies(match) else "", shown)
    joined = _JOINERS.sub(lambda match: match[0] if _joins(match) else "", varied)
    hidden = len(plain) - len(joined)
    plain = "\n".join(line.rstrip() for line in joined.split("\n")).strip()
    # What was removed may have stood between a letter and its accent.
    plain = normalize("NFC", plain) if any(map(_is_seen, plain)) else ""
    tag = _MARKUP.search(plain)
    return Cleaned(plain, turned, hidden, len(_CONTROL.findall(plain)), tag[0] if tag else "")


def _is_seen(letter: str) -> bool:
    kind = category(letter)
    return letter != BLANK and kind[0] not in "MZ" and kind not in ("Cc", "Cf")


def _varies(match: re.Match[str]) -> bool:
    before = match.string[: match.start()][-1:]
    if match[0] > "\uffff":
        return before > "\u33ff" and category(before) == "Lo"
    return (before > "\u02ff" or before in VARIED) and _is_seen(before)


def _joins(match: re.Match[str]) -> bool:
    text = match.string
    before, after = text[: match.start()][-1:], text[match.end() :][:1]
    return bool(before and after) and all(
        ord(side) > 0x2FF and category(side)[0] in "LMS" for side in (before, after)
    )


@dataclass(frozen=True, slots=True)
class Presentation:
    """What is done to an output before anybody or any metric sees it; recorded with the track."""

    true_case: bool = False
    """Capitals at the beginning of sentences, in I and in known names,
    where a text has none at all.
    """
    detokenise: bool = False
    """Blanks as in printed text, brackets and quotation marks instead of their names."""
    unknown: bool = False
    """One black square for each mark of an unknown word."""
    version: int = 1

    def as_record(self) -> dict[str, bool | int]:
        """Return the setting as a JSON object, to be stored beside what was shown."""
        return asdict(self)

    @property
    def name(self) -> str:
        """What tells the setting from others, on one line; empty for texts as they are."""
        parts = [name for name in SAID if getattr(self, name)]
        return " ".join([*parts, str(self.version)]) if parts else ""

    @property
    def words(self) -> list[str]:
        """What is done, in words."""
        return [words for name, words in SAID.items() if getattr(self, name)]

    @classmethod
    def of(cls, record: Mapping[str, object]) -> "Presentation":
        """Return the setting of a JSON object; as it is, where it is empty. Raises ValueError."""
        known = {"version": 1, **{name: record.get(name) is True for name in SAID}}
        if record and dict(record) != known:
            raise ValueError(f"a presentation has {', '.join(known)}; got {dict(record)!r}")
        return cls(*(bool(known[name]) for name in SAID))


SAID = {
    "true_case": "capitals, where a text has none",
    "detokenise": "blanks, brackets and quotation marks as in print",
    "unknown": f"{UNKNOWN} for each mark of an unknown word",
}
"""What each part of a setting does, for people"""
AS_IT_IS = Presentation()
PRESENTED = Presentation(true_case=True, detokenise=True, unknown=True)


@dataclass(frozen=True, slots=True)
class Casing:
    """How words are written that the texts around an output write with capitals."""

    words: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @classmethod
    def of(cls, texts: Iterable[str]) -> "Casing":
        """Return the most frequent form of each word that is mostly written with a capital inside
        sentences.
        """
        forms: dict[str, Counter[str]] = {}
        for text in texts:
            for match in _WORD.finditer(text):
                start = match.start()
                before = text[max(0, start - REACH) : start].rstrip(' \t"“‘([')
                if before and before[-1] not in ".!?…:\n":
                    forms.setdefault(match[0].lower(), Counter())[match[0]] += 1
        words = {}
        for lower, counts in forms.items():
            form = max(counts, key=lambda word: (counts[word], word))
            if form != lower:
                words[lower] = form
        return cls(MappingProxyType(words))


def present(text: str, setting: Presentation, casing: Casing | None = None) -> str:
    """Return the text as it is shown; what is presented already stays as it is."""
    shown = text
    if setting.unknown:
        shown = _UNKNOWN_TOKEN.sub(UNKNOWN, shown)
    if setting.detokenise:
        shown = _detokenised(shown)
    if setting.true_case:
        shown = _true_cased(shown, casing or Casing())
    return shown


def _detokenised(text: str) -> str:
    shown = _BRACKET.sub(lambda match: _BRACKETS[match[0].lower()], text)
    shown = _paired_quotes(shown)
    shown = re.sub(r"(?<!\S)` ?(?=\w)", "‘", shown)
    shown = _CONTRACTION.sub(r"\1", shown)
    # A long run of blanks is one before it is looked at from each of them.
    shown = _BLANKS.sub(" ", shown)
    for _ in range(3):  # blanks before a mark may stand before another one
        shown = _AFTER.sub(r"\1", _BEFORE.sub(r"\1", shown))
    return _BLANKS.sub(" ", shown).strip()


def _paired_quotes(text: str) -> str:
    """Quotation marks that stand alone or as ``…'' become “…”, in turns."""
    is_open = False

    def turn(match: re.Match[str]) -> str:
        nonlocal is_open
        is_open = match[0] == "``" or (match[0] == '"' and not is_open)
        return "“" if is_open else "”"

    return _QUOTES.sub(turn, text)


def _true_cased(text: str, casing: Casing) -> str:
    if text != text.lower():
        return text  # a text with capitals of its own is left alone
    named = _WORD.sub(lambda match: casing.words.get(match[0], match[0]), text)
    named = re.sub(r"(?<![\w'’])i(?=$|[^\w-]|['’](?:m|ve|ll|d)\b)", "I", named)
    return _SENTENCE.sub(lambda match: match[0][:-1] + match[0][-1].upper(), named)
