"""News items as patterns: each with what is said of it,
and a question that one sentence answers.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Item:
    """One item: four sentences, their summary, and a question about the third sentence."""

    sentences: tuple[str, str, str, str]
    summary: str
    retold: tuple[str, str]
    """The same by two people: what systems write is held against both,
    and each against the other
    """
    question: str
    answer: str
    other: str
    """An answer that is wrong, but might be right"""
    absurd: str
    """An answer that cannot be right"""

    @property
    def source(self) -> str:
        """The whole item."""
        return " ".join(self.sentences)


PLACES = (
    "Ostrand", "Vellmo", "Karsund", "Tarn", "Hollin", "Brask", "Mirow", "Easter Quay",
    "Sundby", "Eldra", "Norrholm", "Quennick",
)  # fmt: skip
PATTERNS = (
    Item(
        (
            "The ferry terminal at {place} closed on Monday after a storm tore off part"
            " of its roof.",
            "About 400 people a day will have to use the road bridge instead.",
            "Repairs will take {n} weeks, the harbour office said.",
            "The mayor asked for a second terminal further up the river.",
        ),
        "A storm closed the ferry terminal at {place} on Monday, and repairs will take {n} weeks.",
        (
            "After Monday’s storm no ferry calls at {place} for {n} weeks, until the"
            " roof is repaired.",
            "Ferry passengers of {place} take the road bridge for {n} weeks: a storm"
            " damaged the terminal.",
        ),
        "How long will the repairs of the ferry terminal at {place} take?",
        "{n} weeks",
        "{m} weeks",
        "the road bridge",
    ),
    Item(
        (
            "The library of {place} will lend out tools from next month.",
            "Drills and ladders were given by people who no longer need them.",
            "Whoever has a card may keep a tool for {n} days.",
            "Two other towns tried the same last year and found that nothing was lost.",
        ),
        "From next month the library of {place} lends out tools for {n} days each.",
        (
            "With a card one may soon borrow drills and ladders at {place}, for up to {n} days.",
            "The library of {place} adds tools to its books; readers may keep one for {n} days.",
        ),
        "How long may a tool from the library of {place} be kept?",
        "{n} days",
        "{m} days",
        "a ladder",
    ),
    Item(
        (
            "A herd of goats walked through the main street of {place} early on Friday.",
            "They had pushed over a fence that was weakened by the rain.",
            "The police needed {n} hours to bring all of them back.",
            "The owner of the bakery said that she had never sold so many rolls before six.",
        ),
        "Goats walked through {place} on Friday, and the police needed {n} hours to"
        " bring them back.",
        (
            "It took the police of {place} {n} hours on Friday to catch a herd of goats in"
            " the main street.",
            "Escaped goats kept the police of {place} busy for {n} hours early on Friday.",
        ),
        "How long did the police of {place} need to bring the goats back?",
        "{n} hours",
        "{m} hours",
        "because of the bakery",
    ),
    Item(
        (
            "The school at {place} gets a new kitchen this summer.",
            "Until now meals came by van and were often cold.",
            "The county pays {n} million crowns for the work.",
            "Pupils may vote on the first menu.",
        ),
        "The school at {place} gets a new kitchen this summer, for which the county pays {n}"
        " million crowns.",
        (
            "Meals at the school of {place} will be cooked there: the county spends {n} million"
            " crowns on a kitchen.",
            "The county gives {n} million crowns so that the school at {place} can cook"
            " for its pupils.",
        ),
        "How much does the county pay for the kitchen of the school at {place}?",
        "{n} million crowns",
        "{m} million crowns",
        "the first menu",
    ),
    Item(
        (
            "The night train to {place} will run again from the first of March.",
            "It had been stopped when the old sleeping cars wore out.",
            "A bed costs {n} crowns if it is booked a month ahead.",
            "Hotels along the line hope for guests who come without a car.",
        ),
        "The night train to {place} runs again from March, and a bed costs {n} crowns.",
        (
            "In March the trains with beds to {place} return, at {n} crowns for those"
            " who book early.",
            "Sleeping cars run to {place} once more from the first of March; a bed is {n}"
            " crowns in advance.",
        ),
        "What does a bed in the night train to {place} cost?",
        "{n} crowns",
        "{m} crowns",
        "sleeping cars",
    ),
    Item(
        (
            "Divers found the bell of a ship in the bay of {place}.",
            "It lay under sand at a place where anchors are forbidden.",
            "The bell is {n} hundred years old, says the museum.",
            "Nobody knows yet which ship it belonged to.",
        ),
        "Divers found a ship’s bell, {n} hundred years old, in the bay of {place}.",
        (
            "A bell of {n} hundred years ago was found under sand off {place}; its ship"
            " is not known.",
            "In the bay of {place} divers came upon a ship’s bell that the museum calls {n} hundred"
            " years old.",
        ),
        "How old is the bell that was found in the bay of {place}?",
        "{n} hundred years",
        "{m} hundred years",
        "under sand",
    ),
)
NUMBERS = ("three", "four", "five", "six", "seven", "eight")


def items() -> dict[str, Item]:
    """The items by their ids: each pattern at each place, with numbers of its own."""
    made = {}
    for number, pattern in enumerate(PATTERNS):
        for where, place in enumerate(PLACES):
            turn = number + where
            words = {
                "place": place,
                "n": NUMBERS[turn % len(NUMBERS)],
                "m": NUMBERS[(turn + 2) % len(NUMBERS)],
            }
            first, second, third, fourth = (
                sentence.format(**words) for sentence in pattern.sentences
            )
            made[f"item-{number + 1}-{place.split()[0].lower()}"] = Item(
                (first, second, third, fourth),
                pattern.summary.format(**words),
                (pattern.retold[0].format(**words), pattern.retold[1].format(**words)),
                pattern.question.format(**words),
                pattern.answer.format(**words),
                pattern.other.format(**words),
                pattern.absurd.format(**words),
            )
    return made
