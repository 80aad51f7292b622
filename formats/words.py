"""The definition of a word, for texts in any script.

A word is a run of letters, digits and underscores with the marks that belong to them (accents,
vowel signs, joiners). Chinese characters and Japanese kana are not separated by blanks: each one is
a word. Scripts without blanks for which there is no such rule (Thai, Khmer, …) have no words here.
"""

from __future__ import annotations

import re
import unicodedata

_KANA = "\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
_HAN = "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
KANA, HAN = re.compile(f"[{_KANA}]"), re.compile(f"[{_HAN}]")
_WITHOUT_BLANKS = (
    "\u0e00-\u0fff"  # Thai, Lao, Tibetan
    "\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaa7f"  # Myanmar
    "\u1780-\u17ff\u1950-\u19df\u1a20-\u1aaf\uaa80-\uaadf"  # Khmer, Tai Le, Tai Lue, Tham, Viet
    "\u1b00-\u1b7f\ua980-\ua9df"  # Balinese, Javanese
)
UNKNOWN_SHARE = 0.05
"""Share of a text's letters in scripts without blanks beyond which its words are unknown"""


def _combining_marks_class() -> str:
    """Return all combining marks and joiners, as part of a regular expression's character class."""
    # All marks but the variation selectors of plane 14 lie below U+20000.
    codes = [code for code in range(0x300, 0x20000) if unicodedata.category(chr(code))[0] == "M"]
    ranges: list[list[int]] = []
    for code in codes:
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "\u200c\u200d\U000e0100-\U000e01ef" + "".join(f"{chr(a)}-{chr(b)}" for a, b in ranges)


MARKS = _combining_marks_class()
_LETTERS = rf"[^\W{_KANA}{_HAN}]"
WORD = rf"(?:[{_KANA}{_HAN}][{MARKS}]*|{_LETTERS}+(?:[{MARKS}]+{_LETTERS}*)*)"
"""Regular expression that matches one word"""
_WORD = re.compile(WORD)
_LETTER = re.compile(r"[^\W\d_]")
_UNKNOWN = re.compile(rf"(?=[{_WITHOUT_BLANKS}])[^\W\d_]")


def split_words(text: str) -> list[str]:
    """Return the words of a text, in order.

    Examples
    --------
    >>> split_words("It's 5 o'clock."), split_words("नमस्ते दुनिया"), split_words("在2019年")
    (['It', 's', '5', 'o', 'clock'], ['नमस्ते', 'दुनिया'], ['在', '2019', '年'])
    """
    return _WORD.findall(text)


def can_split_words(text: str) -> bool:
    """Return False for a text in a script without blanks that has no rule for words.

    Examples
    --------
    >>> can_split_words("สวัสดีชาวโลก"), can_split_words("Hello, world")
    (False, True)
    """
    return len(_UNKNOWN.findall(text)) <= UNKNOWN_SHARE * len(_LETTER.findall(text))
