"""A fictional world: people with families and careers, organisations with owners, and what is true
of them.
"""

from dataclasses import dataclass, field

import numpy as np

from rehearsal.newspaper import lexicon as lx


@dataclass(frozen=True, eq=False)
class Entity:
    """Somebody or something that documents mention by several names."""

    key: int
    type: str
    name: str
    shorts: tuple[str, ...] = ()
    acronym: str = ""
    article: bool = False
    male: bool = True
    first: str = ""
    last: str = ""
    kind: str = ""
    trade: str = ""
    link: str = ""


@dataclass(frozen=True, eq=False)
class Value:
    """A string value: a title or a date as it is written."""

    type: str
    text: str


Filler = Entity | Value


@dataclass(frozen=True)
class Binding:
    """A frame (a kind of fact) with its slots filled."""

    frame: str
    slots: dict[str, Filler]

    def about(self) -> list[Entity]:
        """The entities in the slots."""
        return [filler for filler in self.slots.values() if isinstance(filler, Entity)]


@dataclass
class World:
    """All entities, and for each of them the bindings that it takes part in."""

    people: list[Entity] = field(default_factory=list)
    organisations: list[Entity] = field(default_factory=list)
    places: dict[str, Entity] = field(default_factory=dict)
    bindings: dict[int, list[Binding]] = field(default_factory=dict)
    employer: dict[int, tuple[Entity, str]] = field(default_factory=dict)
    headquarters: dict[int, Entity] = field(default_factory=dict)
    born: dict[int, int] = field(default_factory=dict)
    gone: set[int] = field(default_factory=set)  # the dead and the dissolved
    count: int = 0

    def key(self) -> int:
        """The next unused entity key."""
        self.count += 1
        return self.count

    def state(self, frame: str, **slots: Filler) -> Binding:
        """The binding, recorded with every entity that it is about."""
        binding = Binding(frame, slots)
        for entity in binding.about():
            self.bindings.setdefault(entity.key, []).append(binding)
        return binding


def invent(scale: int, rng: np.random.Generator) -> World:
    """A world large enough for `scale` documents."""
    world = World()
    _places(world)
    families = max(8, round(2.2 * scale**0.75))
    companies = max(8, round(1.5 * scale**0.7))
    _institutions(world, companies, rng)
    names: set[str] = set()
    for _ in range(families):
        _family(world, names, rng)
    _careers(world, rng)
    _ownership(world, rng)
    return world


def pick(items, rng: np.random.Generator):  # type: ignore[no-untyped-def]
    """One of the items, each as likely."""
    return items[int(rng.integers(len(items)))]


def written_date(rng: np.random.Generator, first: int, last: int) -> Value:
    """A day between two years, in news style."""
    return Value(
        "DATE", f"{pick(lx.MONTHS, rng)} {rng.integers(1, 29)}, {rng.integers(first, last + 1)}"
    )


def _recent(rng: np.random.Generator) -> Value:
    # Before the first document is dated, so that nobody is dead in one story and alive in the next.
    return Value("DATE", f"{pick(lx.MONTHS[:6], rng)} {rng.integers(1, 29)}, 2012")


def year(rng: np.random.Generator, first: int, last: int) -> Value:
    """A bare year."""
    return Value("DATE", str(rng.integers(first, last + 1)))


def _year_of(date: Value) -> int:
    return int(date.text[-4:])


def _links(name: str) -> str:
    return name.replace(" ", "_")


def _places(world: World) -> None:
    for city, country in lx.COUNTRY_OF.items():
        for name in (city, country):
            if name not in world.places:
                aliases = lx.COUNTRY_ALIASES.get(name, ())
                world.places[name] = Entity(
                    world.key(),
                    "GPE",
                    name,
                    aliases,
                    article=name in lx.ARTICLED_COUNTRIES,
                    kind="place",
                    link=_links(name),
                )


def _organisation(world: World, rng: np.random.Generator, name: str, kind: str, **more) -> Entity:  # type: ignore[no-untyped-def]
    # Half of the organisations have a page in the reference knowledge base; the others are new to
    # it.
    link = _links(name) if rng.random() < 0.6 else ""
    entity = Entity(world.key(), "ORG", name, kind=kind, link=link, **more)
    world.organisations.append(entity)
    return entity


def _settle(world: World, entity: Entity, city: str, since: int, rng: np.random.Generator) -> None:
    world.headquarters[entity.key] = world.places[city]
    if city not in entity.name:
        world.state("hq", O=entity, C=world.places[city])
    if rng.random() < 0.7:
        date = written_date(rng, since, 2004) if rng.random() < 0.25 else year(rng, since, 2004)
        world.state("dated", O=entity, Y=date)


def _institutions(world: World, companies: int, rng: np.random.Generator) -> None:
    cities = list(lx.COUNTRY_OF)
    for name, acronym in lx.ALLIANCES[: max(3, min(10, companies // 3))]:
        entity = _organisation(world, rng, name, "alliance", acronym=acronym, article=True)
        _settle(
            world,
            entity,
            pick(("Geneva", "London", "Singapore", "Rotterdam", "Montreal"), rng),
            1950,
            rng,
        )
    for name in lx.NGO_NAMES[: max(4, min(12, companies // 3))]:
        acronym = (
            "".join(word[0] for word in name.split() if word[0].isupper())
            if len(name.split()) > 2
            else ""
        )
        article = not name.startswith("Rivers")
        entity = _organisation(world, rng, name, "ngo", acronym=acronym, article=article)
        _settle(world, entity, pick(cities, rng), 1965, rng)
    for city in rng.permutation(cities)[: max(5, companies // 3)]:
        entity = _organisation(world, rng, f"University of {city}", "university", article=True)
        _settle(world, entity, str(city), 1850, rng)
    for city in rng.permutation(cities)[: max(3, companies // 5)]:
        name = f"{city} {pick(lx.CLUB_WORDS, rng)}"
        entity = _organisation(
            world, rng, name, "club", shorts=(name.split()[-1],) if "United" not in name else ()
        )
        _settle(world, entity, str(city), 1890, rng)
    _ministries(world, max(5, companies // 3), rng)
    _companies(world, companies, rng)


def _ministries(world: World, number: int, rng: np.random.Generator) -> None:
    homes = {lx.COUNTRY_OF[culture[3].split("|")[0]] for culture in lx.CULTURES.values()}
    countries = sorted(homes - lx.ARTICLED_COUNTRIES)
    names = [
        (prefix, *ministry)
        for prefix in ("", "Federal ", "National ")
        for ministry in lx.MINISTRIES
    ]
    for country, (prefix, portfolio, title) in zip(
        rng.permutation(countries)[:number], names, strict=False
    ):
        shorts = () if prefix else (f"{portfolio} Ministry",)
        _organisation(
            world,
            rng,
            f"{prefix}Ministry of {portfolio}",
            "ministry",
            shorts=shorts,
            article=True,
            trade=f"{country}|{title}",
        )


def _companies(world: World, companies: int, rng: np.random.Generator) -> None:
    cities = list(lx.COUNTRY_OF)
    words = list(rng.permutation(lx.COMPANY_WORDS))
    surnames = [
        name for culture in lx.CULTURES.values() for name in culture[2].split() if len(name) > 5
    ]
    words += list(rng.permutation(surnames))
    sectors = list(lx.SECTORS)
    for number in range(companies):
        first_word = str(words[number % len(words)])
        sector = str(pick(sectors, rng))
        suffixes, trade, _ = lx.SECTORS[sector]
        name = f"{first_word} {pick(suffixes, rng)}"
        if number >= len(words) or any(name == other.name for other in world.organisations):
            name = f"{first_word} {pick(cities, rng)} {pick(suffixes, rng)}"
        entity = _organisation(
            world, rng, name, "company", shorts=(first_word,), trade=f"{trade}|{sector}"
        )
        _settle(world, entity, str(pick(cities, rng)), 1921, rng)
        if rng.random() < 0.12:
            world.gone.add(entity.key)
            world.state("dissolved", O=entity, D=_recent(rng))


def _person(
    world: World, names: set[str], rng: np.random.Generator, culture: str, last: str, male: bool
) -> Entity:
    firsts = lx.CULTURES[culture][0 if male else 1].split()
    first_name = str(pick(firsts, rng))
    for _ in range(12):
        if f"{first_name} {last}" not in names:
            break
        first_name = str(pick(firsts, rng))
    else:
        # a middle initial tells namesakes apart
        first_name = f"{first_name} {pick('ABCDEGHJKLMNPRSTVW', rng)}."
    names.add(f"{first_name} {last}")
    name = f"{last} {first_name}" if culture in lx.SURNAME_FIRST else f"{first_name} {last}"
    link = _links(name) if rng.random() < 0.55 else ""
    person = Entity(
        world.key(),
        "PER",
        name,
        (last,),
        male=male,
        first=first_name,
        last=last,
        kind="person",
        trade=culture,
        link=link,
    )
    world.people.append(person)
    return person


def _family(world: World, names: set[str], rng: np.random.Generator) -> None:
    culture = str(pick(list(lx.CULTURES), rng))
    last = str(pick(lx.CULTURES[culture][2].split(), rng))
    male = bool(rng.random() < 0.55)
    hero = _person(world, names, rng, culture, last, male)
    if rng.random() < 0.15:
        world.gone.add(hero.key)
        place = world.places[str(pick(lx.CULTURES[culture][3].split("|"), rng))]
        world.state("death", P=hero, C=place, D=_recent(rng))
    birth = _origin(world, hero, 1938, 1950 if hero.key in world.gone else 1972, rng)
    if rng.random() < 0.55:
        spouse = _person(
            world, names, rng, culture, str(pick(lx.CULTURES[culture][2].split(), rng)), not male
        )
        _origin(world, spouse, birth, birth + 6, rng)
        world.state("spouse", P=hero, Q=spouse, Y=year(rng, birth + 22, birth + 34))
    child = None
    for _ in range(int(rng.integers(0, 3)) if birth < 1958 else 0):
        child = _person(world, names, rng, culture, last, bool(rng.random() < 0.5))
        _origin(world, child, birth + 20, birth + 28, rng)
        world.state("parent", P=hero, Q=child)
    if rng.random() < 0.4:
        sibling = _person(world, names, rng, culture, last, bool(rng.random() < 0.5))
        _origin(world, sibling, birth + 1, birth + 9, rng)
        world.state("sibling", P=hero, Q=sibling)
        if child is not None:
            world.state("uncle", P=sibling, Q=child)


def _origin(world: World, person: Entity, first: int, last: int, rng: np.random.Generator) -> int:
    """The year of birth; birthplace, date and home are recorded."""
    home = lx.CULTURES[person.trade][3].split("|")
    date = written_date(rng, first, last)
    world.born[person.key] = int(date.text[-4:])
    world.state(
        "birth",
        P=person,
        C=world.places[str(pick(home, rng))],
        D=date,
        Y=Value("DATE", date.text[-4:]),
    )
    city = str(pick(home if rng.random() < 0.6 else list(lx.COUNTRY_OF), rng))
    if rng.random() < 0.6 and person.key not in world.gone:
        world.state("home", P=person, C=world.places[city])
    return _year_of(date)


def _careers(world: World, rng: np.random.Generator) -> None:
    by_kind: dict[str, list[Entity]] = {}
    for organisation in world.organisations:
        if organisation.key in world.gone:
            continue
        by_kind.setdefault(organisation.kind, []).append(organisation)
    kinds = ("company", "company", "company", "university", "club", "ngo", "alliance", "ministry")
    taken: set[tuple[int, str]] = set()
    for person in world.people:
        for stage in range(int(rng.integers(1, 3))):
            employer = _employer(by_kind, str(pick(kinds, rng)), person, rng)
            title = title_at(employer, rng)
            if title in lx.PLAYERS and world.born[person.key] < 1977:
                title = str(pick(("head coach", "sporting director", "scout", "club doctor"), rng))
            single = not title.startswith(
                ("professor", "board", "adviser", "strik", "midf", "defend")
            )
            if (employer.key, title) in taken and single:
                continue
            taken.add((employer.key, title))
            if "minister" in title and "deputy" not in title and person.key not in world.gone:
                country = world.places[employer.trade.split("|")[0]]
                world.state("minister", P=person, T=Value("TITLE", title), G=country)
            elif person.key not in world.gone and (stage == 0 or person.key not in world.employer):
                world.state("job", P=person, T=Value("TITLE", title), O=employer)
            else:
                world.state("former", P=person, T=Value("TITLE", title), O=employer)
            world.employer.setdefault(person.key, (employer, title))
        if rng.random() < 0.65:
            world.state("school", P=person, U=pick(by_kind["university"], rng))


def _employer(
    by_kind: dict[str, list[Entity]], kind: str, person: Entity, rng: np.random.Generator
) -> Entity:
    """Somebody to work for; only one's own country makes one a minister."""
    homes = {lx.COUNTRY_OF[city] for city in lx.CULTURES[person.trade][3].split("|")}
    options = [e for e in by_kind[kind] if kind != "ministry" or e.trade.split("|")[0] in homes]
    employer: Entity = pick(options or by_kind["company"], rng)
    return employer


def title_at(employer: Entity, rng: np.random.Generator) -> str:
    if employer.kind == "company":
        extra = lx.SECTORS[employer.trade.split("|")[1]][2]
        return str(pick(lx.COMPANY_TITLES + extra, rng))
    if employer.kind == "ministry":
        return (
            employer.trade.split("|")[1]
            if rng.random() < 0.5
            else str(pick(lx.MINISTRY_TITLES, rng))
        )
    titles = {
        "university": lx.UNIVERSITY_TITLES,
        "club": lx.CLUB_TITLES,
        "ngo": lx.NGO_TITLES,
        "alliance": lx.ALLIANCE_TITLES,
    }
    return str(pick(titles[employer.kind], rng))


def _ownership(world: World, rng: np.random.Generator) -> None:
    companies = [e for e in world.organisations if e.kind == "company" and e.key not in world.gone]
    alliances = [entity for entity in world.organisations if entity.kind == "alliance"]
    ngos = [entity for entity in world.organisations if entity.kind == "ngo"]
    elders = [
        p
        for p in world.people
        for b in world.bindings[p.key]
        if b.frame == "birth"
        and b.slots["P"] is p
        and isinstance(b.slots["Y"], Value)
        and _year_of(b.slots["Y"]) < 1960
    ]
    for number, company in enumerate(companies):
        if rng.random() < 0.6:
            founder = pick(elders, rng)
            world.state("founded", O=company, P=founder, Y=year(rng, 1982, 2003))
            # The year of foundation is told with the founder or alone, never twice.
            world.bindings[company.key] = [
                b for b in world.bindings[company.key] if b.frame != "dated"
            ]
        if number and rng.random() < 0.4:
            world.state(
                "subsidiary",
                O=companies[int(rng.integers(number))],
                Q=company,
                Y=year(rng, 2000, 2012),
            )
        elif number and rng.random() < 0.5:
            world.state("stake", O=companies[int(rng.integers(number))], Q=company)
        if rng.random() < 0.35:
            world.state(
                "shares",
                P=pick([p for p in world.people if p.key not in world.gone], rng),
                O=company,
            )
        if rng.random() < 0.5:
            world.state("member", O=pick(alliances, rng), Q=company)
    for ngo in ngos:
        if rng.random() < 0.7:
            world.state("founded", O=ngo, P=pick(elders, rng), Y=year(rng, 1985, 2004))
            world.bindings[ngo.key] = [b for b in world.bindings[ngo.key] if b.frame != "dated"]
        if rng.random() < 0.4:
            world.state("member", O=pick(alliances, rng), Q=ngo)
