"""Sentences that only seem to state a fact, and sentences in which people merely meet; slots as in
`phrases`.
"""

# What a careless reader takes for a statement of the frame's facts.
DENIED: dict[str, tuple[str, ...]] = {
    "job": (
        "{P} denied reports that {P.he} had been offered the post of {T} at {O}.",
        "{X:f}, not {P}, was mentioned as a possible {T} of {O}.",
        "{P} has turned down {O} twice and said {P.he} would never be its {T}.",
    ),
    "birth": (
        "{P} was not born in {C}, as some newspapers reported.",
        "Contrary to an early profile, {P} has no roots in {C}.",
        "{P} learned to swim in {C}, on a school trip.",
    ),
    "home": (
        "{P} considered moving to {C} but dropped the idea.",
        "{P} stopped in {C} for a few hours on {W} before flying on.",
        "{P} visited {C} in the spring.",
        "{P} will speak at a conference in {C} next month.",
        "{P} missed a flight to {C} on {W}.",
    ),
    "spouse": (
        "{P} denied being married to {Q:f}, a rumor that resurfaces every summer.",
        "{P} and {Q:f} are friends and nothing more, a spokesman said.",
    ),
    "parent": (
        "{P} is not related to {Q:f}, despite what some websites claim.",
        "{P} joked that {Q:f} might as well be {P.his} {Q.son}.",
    ),
    "sibling": (
        "{P} is no relation of {Q:f}, though mail for one often reaches the other.",
        "{P} and {Q:f} are often taken for relatives, which they are not.",
    ),
    "school": (
        "{P} was rejected by {U} and says so on every stage.",
        "{P} gave a guest lecture at {U} on {W}.",
    ),
    "hq": (
        "{O} considered a move to {C} but found the rents too high.",
        "{O} opened a small sales office in {C}.",
        "{O} sent {few} employees to a fair in {C}.",
        "{O} rents a warehouse in {C}.",
        "{O} may shift its headquarters to {C}, according to a person who asked not to be named.",
    ),
    "founded": (
        "{P:f} is often wrongly described as the founder of {O}.",
        "{P} might have founded {O}, friends say, had the money been there.",
    ),
    "subsidiary": (
        "{O} abandoned its attempt to buy {Q}.",
        "{O} denied that it planned to take over {Q}.",
        "Analysts have long speculated that {O} could acquire {Q}.",
    ),
    "stake": (
        "{O} said it had no intention of buying shares in {Q}.",
        "{O} and {Q} use the same auditors.",
        "{O} looked at the books of {Q} but made no offer for any shares.",
    ),
    "shares": (
        "{P} denied holding shares in {O}.",
        "{P} said {P.he} would buy into {O} only if the price fell by half.",
    ),
    "member": (
        "{Q} has applied to join {O}, but no decision is expected this year.",
        "{Q} refused to join {O}, citing the fees.",
        "{O} rejected {Q} by {few} votes.",
        "{Q} sent an observer to the last congress of {O} but has not joined.",
    ),
    "death": ("Rumors that {P} had died in {C} proved false in the end.",),
    "dissolved": (
        "{O} narrowly escaped being dissolved on {D}.",
        "A motion to dissolve {O} was voted down on {D}.",
        "On {D}, creditors gave {O} one more year.",
    ),
    "dated": (
        "A rival with a similar name appeared {on:Y}, to the annoyance of {O}.",
        "{O} changed its name {on:Y} after a quarrel over a trademark.",
        "The present building of {O} dates from {Y}.",
        "{O} has published its accounts only since {Y}.",
    ),
    "minister": ("{P} was once tipped as a future {T} of {G}, but the call never came.",),
    "uncle": ("{P:f} and {Q:f} were photographed together at a charity auction.",),
    "former": ("{P} never worked for {O}, a spokeswoman said, correcting an earlier statement.",),
}

# Nothing is stated between anybody here.
TOGETHER: tuple[str, ...] = (
    "{X} and {Z} attended the same reception on {W}.",
    "{X} spoke for ten minutes; {Z} spoke for an hour.",
    "{X} sat two rows behind {Z} at the hearing.",
    "{X} and {Z} both signed an open letter on road safety.",
    "{X} told {Z} during the debate that the numbers did not add up.",
    "Organizers had invited {X} as well as {Z}, but only one of them came.",
    "{X} thanked {Z} by name, which surprised the audience.",
    "{X} disagreed with {Z} about almost everything.",
    "Both {X} and {Z} were named in the same court filing last month.",
    "{X} beat {Z} in a charity chess game, to general amusement.",
    "A committee that includes {X} and {Z} will report in autumn.",
    "{X} criticized {O} in a radio interview on {W}.",
    "{X} praised {O} for its patience.",
    "{X} has sued {O} over an unpaid invoice.",
    "A letter from {X} to {O} was leaked on {W}.",
    "{X} met representatives of {O} in {C}.",
    "{X} was seen in {C} on {W}, leaving a hotel by the back door.",
    "{X} passed through {C} on {W} without speaking to reporters.",
    "{F} and {M} compete for the same customers.",
    "{F} settled a patent dispute with {M} out of court.",
    "{F} and {M} will share the cost of a new training center in {C}.",
    "Lawyers for {F} and {M} met in {C} on {W}.",
    "{F} supplied parts to {M} until a quarrel over prices.",
    "{F} opened a branch in {C} on {W}.",
    "{F} lost a public tender in {C} to {M}.",
    "Officials in {C} said they had received no complaint about {O}.",
    "A storm in {C} delayed a shipment for {F} by {few} days.",
    "{X} compared the mood in {C} to that of the last election.",
)
