"""Sentences that state facts about the living, about the dead, and two facts at a time.

A slot is written {P}; {P:f} asks for the full name, {P:l} for the surname or a short name, {P:r}
for the first name, {O:n} for a name without its article, {the:O} for the article alone; {T:a} for a
title with "a" or "an", {T:d} with "the" and {T:b} with nothing, unless several people may have that
title; {of:O} for "of" or "at" before a name; {on:Y} for a date with its preposition; {P.he} for a
word that depends on the gender of P. {W} is a recent weekday, {X} and {Z} are people who merely
happen to be there, {O} and {N} organisations, {F} and {M} companies, {C} a place; {num}, {few},
{staff}, {pct} and {money} are numbers.
"""

# frame: the facts that it states, provided that both slots occur in the sentence
FACTS: dict[str, tuple[tuple[str, str, str], ...]] = {
    "job": (("P", "per:title", "T"), ("P", "per:employee_or_member_of", "O")),
    "former": (("P", "per:title", "T"), ("P", "per:employee_or_member_of", "O")),
    "minister": (("P", "per:title", "T"), ("P", "per:employee_or_member_of", "G")),
    "birth": (
        ("P", "per:place_of_birth", "C"),
        ("P", "per:date_of_birth", "D"),
        ("P", "per:date_of_birth", "Y"),
    ),
    "home": (("P", "per:place_of_residence", "C"),),
    "death": (("P", "per:place_of_death", "C"), ("P", "per:date_of_death", "D")),
    "spouse": (("P", "per:spouse", "Q"),),
    "parent": (("P", "per:children", "Q"),),
    "sibling": (("P", "per:siblings", "Q"),),
    "uncle": (("P", "per:other_family", "Q"),),
    "school": (("P", "per:schools_attended", "U"),),
    "hq": (("O", "org:place_of_headquarters", "C"),),
    "dated": (("O", "org:date_founded", "Y"),),
    "dissolved": (("O", "org:date_dissolved", "D"),),
    "founded": (("P", "per:organizations_founded", "O"), ("O", "org:date_founded", "Y")),
    "subsidiary": (("O", "org:subsidiaries", "Q"),),
    "stake": (("O", "org:holds_shares_in", "Q"),),
    "shares": (("P", "per:holds_shares_in", "O"),),
    "member": (("Q", "org:member_of", "O"),),
}

# Easy wordings come first: a cautious system knows the first ones and misses the last.
STATED: dict[str, tuple[str, ...]] = {
    "job": (
        "{P}, {T:d} {of:O}, did not return calls on {W}.",
        "{P:f}, {T:b} {of:O}, said the details would be published within weeks.",
        "{T:d} {of:O}, {P:f}, was not available for comment.",
        "{P} took over as {T:b} {of:O} after a long search.",
        "{P} has been {T:b} {of:O} for {few} years.",
        "As {T:b} {of:O}, {P} answers for some {staff} employees.",
        "{O} hired {P} as its {T} when few others wanted the post.",
        "At {O}, where {P} is {T:b}, the news was met with silence.",
        "{O:f}’s {T}, {P:f}, called the figures encouraging.",
        "{P} works for {O} as {T:b}.",
        "The plan was drawn up by {P:f}, who joined {O} as {T:b} a year ago.",
        "{P:f}, who is {T:b} {of:O}, was traveling and could not be reached.",
        "{P:f} has worked as {T:b} {of:O} since the spring.",
        "In a letter to {O}, its {T}, {P:f}, defended the decision.",
        "{P:f}, speaking as {T:b} {of:O}, warned against hasty conclusions.",
        "Nobody at {O} was told in advance, not even {P:f}, its {T}.",
        "{O} announced no successor for {P:f}, who remains its {T} until further notice.",
        "It took {few} meetings before {O} made {P:f} its {T}.",
    ),
    "former": (
        "{P}, a former {T} {of:O}, has advised several governments since.",
        "{P} served as {T:b} {of:O} before leaving over a disagreement about costs.",
        "Years ago, {P} was {T:b} {of:O}.",
        "{P} spent {few} years at {O}, the last of them as {T:b}.",
        "{O} parted with {P}, then its {T}, after a poor year.",
        "Colleagues remember {P} from {P.his} time as {T:b} at {O}.",
    ),
    "minister": (
        "{G}’s {T}, {P:f}, said the government would study the report.",
        "{P}, the {T} of {G}, was expected to address reporters on {W}.",
        "{P} was named {T} of {G} in a reshuffle last spring.",
        "The decision rests with {P:f}, who became {T} of {G} two years ago.",
        "In {G}, {T} {P:f} faces pressure from unions and employers alike.",
        "“We will not be rushed,” {P:f}, {G}’s {T}, told lawmakers.",
    ),
    "birth": (
        "{P} was born in {C} on {D}.",
        "{P:f} was born in {C} in {Y}, the youngest of {few} children.",
        "Born in {C} in {Y}, {P} grew up above a bakery.",
        "{P}, a native of {C}, rarely speaks about {P.his} early years.",
        "Born on {D}, {P} is old enough to remember the last crisis.",
        "{C}, where {P} was born, plans to name a square after {P.him}.",
        "{P}, who was born in {C}, left for good at 17.",
        "A {C} native, {P} still follows the local football results.",
        "{P:f} came into the world in {C} in {Y}, in the middle of a strike.",
    ),
    "home": (
        "{P} lives in {C}.",
        "{P} lives in {C} with two dogs and, friends say, too many books.",
        "{P}, who lives in {C}, commutes by train.",
        "{P} moved to {C} more than a decade ago.",
        "Reached at {P.his} home in {C}, {P} declined to discuss the matter.",
        "{P} has made {C} {P.his} home.",
        "Neighbors of {P} in {C} described a quiet, courteous {P.man}.",
        "{P} settled in {C} after years of travel and never left.",
        "{P:f} of {C} was among those who signed the petition.",
    ),
    "death": (
        "{P} died in {C} on {D}.",
        "{P} died on {D} after a long illness.",
        "{P:f} died at a hospital in {C}, relatives said.",
        "{P}’s death in {C} was announced by the family.",
        "When {P} died on {D}, flags flew at half-staff.",
        "A heart attack in {C} ended the life of {P:f}.",
    ),
    "spouse": (
        "{P} is married to {Q:f}.",
        "{P} married {Q:f} in {Y}.",
        "{P} and {P.his} {Q.husband}, {Q:f}, met as students.",
        "{P}’s {Q.husband}, {Q:f}, stood beside {P.him} throughout.",
        "{Q:f}, to whom {P} has been married since {Y}, was in the front row.",
        "{P:f} and {Q:f} wed in {Y} in a ceremony for close relatives.",
        "{P:f} shares a house by the water with {P.his} {Q.husband}, {Q:f}.",
    ),
    "parent": (
        "{P}’s {Q.son}, {Q:f}, has kept out of the public eye.",
        "{P} has a {Q.son}, {Q:f}.",
        "{Q:f}, the {Q.son} of {P:f}, said the family was grateful for the letters.",
        "{P} is the {P.father} of {Q:f}.",
        "“That patience comes from me,” {P} likes to say of {P.his} {Q.son}, {Q:f}.",
        (
            "{Q:f} credits {Q.his} {P.father}, {P:f}, with teaching {Q.him} how to read"
            " a balance sheet."
        ),
        "{P} raised {Q:f} alone and worked nights to pay for school.",
        "{Q:f} followed {Q.his} {P.father}, {P:f}, into public life.",
    ),
    "sibling": (
        "{P}’s {Q.brother}, {Q:f}, manages the family farm.",
        "{P} has a younger {Q.brother}, {Q:f}.",
        "{P:f} and {P.his} {Q.brother}, {Q:f}, have not spoken in public about the matter.",
        "{Q:f}, {P.his} {Q.brother}, was the first person {P} called.",
        "{P} and {Q:f} grew up in the same room, as siblings do, dividing it with chalk.",
        "{Q:f} inherited the workshop together with {Q.his} older {P.brother}, {P:f}.",
    ),
    "uncle": (
        "{Q:f}, a {Q.nephew} of {P:f}, runs a small gallery.",
        "{P}’s {Q.nephew}, {Q:f}, often came along on business trips.",
        "{Q:f} recalled summers at the house of {Q.his} {P.uncle}, {P:f}.",
        "{P:f} paid for the education of {P.his} {Q.nephew}, {Q:f}.",
    ),
    "school": (
        "{P} graduated from {U}.",
        "{P} studied at {U} on a scholarship.",
        "{P} holds a degree from {U}.",
        "{P}, who earned a doctorate at {U}, has published widely.",
        "{P} attended {U} as a part-time student.",
        "At {U}, {P} shared a room with two future judges.",
        "{U} counts {P:f} among its better-known alumni.",
        "A graduate of {U}, {P} is known for careful preparation.",
    ),
    "hq": (
        "{O} is based in {C}.",
        "{O} has its headquarters in {C}.",
        "{the:O}{C}-based {O:n} employs about {staff} people.",
        "{O}, headquartered in {C}, publishes its accounts in spring.",
        "From its head office in {C}, {O} answers letters from all over the world.",
        "{O} moved its headquarters to {C} to save on rent.",
        "Protesters gathered in {C} outside the head office of {O}.",
        "At {O}’s main building in {C}, lights were on past midnight.",
    ),
    "dated": (
        "{O} was founded {on:Y}.",
        "{O} was established {on:Y} with a handful of staff.",
        "{O}, founded {on:Y}, has outlived most of its rivals.",
        "{O} traces its history to {Y}, when it opened with one telephone.",
        "Since its creation {on:Y}, {O} has rarely made headlines.",
        "Set up {on:Y}, {O} has weathered three recessions.",
    ),
    "dissolved": (
        "{O} was dissolved on {D}.",
        "{O} ceased operations on {D}, and its assets were sold.",
        "A court ordered {O} to be wound up on {D}.",
        "{O} closed its doors for good on {D}.",
        "On {D}, the last employees of {O} handed in their keys.",
    ),
    "founded": (
        "{O} was founded by {P:f}.",
        "{P:f} founded {O} in {Y}.",
        "{P}, the founder of {O}, still signs every large check.",
        "{O} was founded in {Y} by {P:f}, then an unknown clerk.",
        "{P:f} set up {O} in {Y} with borrowed money.",
        "{O}, the brainchild of {P:f}, began in a rented garage.",
        "In {Y}, {P:f} started {O} at a kitchen table.",
        "Few believed in {O} when {P:f} launched it.",
        "It was {P:f} who got {O} off the ground in {Y}.",
    ),
    "subsidiary": (
        "{Q} is a subsidiary of {O}.",
        "{Q}, a unit of {O}, reported higher earnings.",
        "{O} owns {Q}.",
        "{O} acquired {Q} in {Y}.",
        "{Q} was bought by {O} in {Y} after weeks of talks.",
        "{O}, the parent company of {Q}, said no jobs would be lost.",
        "{O}’s wholly owned subsidiary {Q} kept its own board.",
        "Since {Y}, {Q} has belonged to {O}.",
        "{O} swallowed {Q} in {Y} in a deal that lawyers still study.",
    ),
    "stake": (
        "{O} holds a {pct} percent stake in {Q}.",
        "{O} owns {pct} percent of {Q}.",
        "{O} has been a shareholder of {Q} for {few} years.",
        "{O} sold part of its shares in {Q} but kept {pct} percent.",
        "Among the shareholders of {Q} is {O}.",
        "{Q} counts {O} among its largest investors.",
    ),
    "shares": (
        "{P} holds {pct} percent of {O}.",
        "{P} owns shares in {O}.",
        "{P}, a major shareholder of {O}, voted against the plan.",
        "{P} bought a {pct} percent stake in {O}.",
        "A filing showed that {P:f} had built up a {pct} percent holding in {O}.",
        "{O} lists {P:f} among its ten largest investors.",
    ),
    "member": (
        "{Q} is a member of {O}.",
        "{Q} joined {O} last year.",
        "{O} counts {Q} among its members.",
        "As a member of {O}, {Q} must publish its safety record.",
        "{Q}, which belongs to {O}, supported the proposal.",
        "{O} admitted {Q} by a narrow vote.",
        "{Q} pays its dues to {O} late, officials say, but it pays them.",
    ),
}

# The same facts when somebody has died or an organisation is no more.
PAST: dict[str, tuple[str, ...]] = {
    "birth": (
        "{P} was born in {C} on {D}.",
        "Born in {C} in {Y}, {P} was the third of {few} children.",
        "{P}, a native of {C}, never lost the accent of {P.his} childhood.",
        "{P} was born in {C}, in a house without electricity.",
        "{P:f} was born on {D}, the {P.son} of a railway clerk.",
    ),
    "death": STATED["death"],
    "spouse": (
        "{P} married {Q:f} in {Y}.",
        "{P} and {Q:f} were married for half a lifetime.",
        "{Q:f} had been the {Q.husband} of {P:f} since {Y}.",
        "{P:f} and {Q:f} wed in {Y} in a ceremony for close relatives.",
    ),
    "parent": (
        "{Q:f} is the {Q.son} of {P:f}.",
        "{P:f} was the {P.father} of {Q:f}.",
        "{P:f} had taught {P.his} {Q.son}, {Q:f}, to read with the help of old newspapers.",
        "{Q:f}, {P.his} {Q.son}, was at {P}’s bedside until the end.",
    ),
    "sibling": (
        "{Q:f} was the younger {Q.brother} of {P:f}.",
        "{P:f} and {P.his} {Q.brother}, {Q:f}, wrote to each other every week.",
        "{Q:f} looked after {Q.his} {P.brother}, {P:f}, in the last months.",
    ),
    "uncle": ("{Q:f} recalled summers at the house of {Q.his} {P.uncle}, {P:f}.",),
    "school": (
        "{P} graduated from {U}.",
        "{P} studied at {U} on a scholarship.",
        "{P} attended {U} as a part-time student.",
        "{P:f} earned a doctorate at {U}, the first in the family to do so.",
    ),
    "former": (
        "{P} served as {T:b} {of:O} for more than a decade.",
        "For {few} years, {P} was {T:b} {of:O}.",
        "{P}, once {T:b} {of:O}, gave up the post without regret.",
        "{P} had joined {O} as {T:b} and stayed for {few} years.",
        "Colleagues remember {P} from {P.his} time as {T:b} at {O}.",
    ),
    "founded": (
        "{O} was founded by {P:f}.",
        "{P:f} founded {O} in {Y}.",
        "In {Y}, {P:f} started {O} at a kitchen table.",
        "It was {P:f} who got {O} off the ground in {Y}.",
        "{P:f} set up {O} in {Y} with borrowed money.",
    ),
    "hq": (
        "{O} had its headquarters in {C}.",
        "{O}, which was based in {C}, once employed {staff} people.",
    ),
    "dated": ("{O} was founded {on:Y}.", "{O}, founded {on:Y}, had outlived most of its rivals."),
    "dissolved": STATED["dissolved"],
}

# Two kinds of facts in one sentence, about the person (or organisation) that both share.
COMBINED: dict[tuple[str, str], tuple[str, ...]] = {
    ("job", "birth"): (
        "{P:f}, the {C}-born {T} {of:O}, is not known for small talk.",
        "{P}, who was born in {C} in {Y}, became {T:b} {of:O} at an unusually early age.",
    ),
    ("job", "home"): (
        "{P}, {T:b} {of:O}, lives in {C}.",
        "{P} moved to {C} soon after becoming {T:b} {of:O}.",
    ),
    ("job", "school"): (
        "{P}, {T:b} {of:O} and a graduate of {U}, chairs the panel.",
        "After {U}, where {P} took a law degree, came the job of {T} at {O}.",
    ),
    ("job", "spouse"): (
        "{P}, {T:b} {of:O}, is married to {Q:f}.",
        "{Q:f}, whose {P.husband}, {P:f}, is {T:b} {of:O}, stayed away from the hearing.",
    ),
    ("birth", "school"): (
        "Born in {C}, {P} went on to study at {U}.",
        "{P} was born in {C} in {Y} and attended {U}.",
    ),
    ("birth", "spouse"): (
        "{P}, who was born in {C} on {D}, married {Q:f} against the wishes of both families.",
    ),
    ("founded", "hq"): (
        "{P:f} founded {O} in {C}, where it still has its headquarters.",
        "{the:O}{C}-based {O:n}, founded by {P:f} in {Y}, has changed its logo only once.",
    ),
    ("dated", "hq"): ("{O}, founded {on:Y} and based in {C}, does not release sales figures.",),
}
