"""The teams and the systems that they submit, each with its strengths and weaknesses."""

from dataclasses import dataclass, field

CATEGORIES = ("true", "trap", "confused", "argument", "spurious")


@dataclass(frozen=True)
class Profile:
    """How a system errs: the log odds with which it believes each category of candidate, and how it
    links mentions.
    """

    team: str
    run: int
    description: str
    means: tuple[float, float, float, float, float] = (0, 0, 0, 0, 0)
    threshold: float = 0.0
    ease: float = 1.0  # how much plain wording helps
    known: float = 0.0  # how much it helps that the fact is stated somewhere else
    noise: float = 1.0
    weak: dict[str, float] = field(default_factory=dict)
    surname: float = 0.1  # chance to attach a surname to the wrong relative
    alias: float = (
        0.1  # chance to miss that a short name or acronym means an organisation mentioned before
    )
    stray: float = 0.01  # chance to attach a mention to anything of its type
    merge: float = 0.05  # chance to take somebody for a namesake of another document
    split: float = 0.05  # chance to miss that an entity is known from another document
    boast: float = 0.5  # log odds of the confidence at the threshold
    slope: float = 0.8
    tight: bool = False  # provenance: the two mentions instead of the sentence
    iso_dates: bool = False
    model: str = ""  # runs with one model differ by their threshold only
    linker: str = ""
    members: tuple[str, ...] = ()
    votes: int = 2

    @property
    def name(self) -> str:
        """The run id."""
        return f"{self.team.replace(' ', '')}_{self.run}"


_FAMILY = ("per:parents", "per:children", "per:spouse", "per:siblings", "per:other_family")
_MONEY = (
    "per:holds_shares_in",
    "org:holds_shares_in",
    "org:shareholders",
    "org:subsidiaries",
    "org:parents",
)

PROFILES: tuple[Profile, ...] = (
    Profile(
        "Harbor",
        1,
        "Hand-written patterns, only those that were nearly always right on old newswire",
        means=(-1.5, -0.9, -4.0, -1.8, -3.9),
        ease=3.2,
        noise=0.8,
        surname=0.55,
        alias=0.45,
        stray=0.03,
        merge=0.3,
        boast=2.0,
        weak=dict.fromkeys(_FAMILY, -0.6),
        model="patterns-precise",
        linker="harbor",
    ),
    Profile(
        "Harbor",
        2,
        "The same patterns plus single cue words (married, based, shares, born)",
        means=(-0.7, 1.4, -2.7, -0.9, -2.4),
        ease=1.8,
        noise=1.0,
        surname=0.55,
        alias=0.45,
        stray=0.03,
        merge=0.3,
        boast=1.0,
        weak=dict.fromkeys(_MONEY, 0.5),
        model="patterns-loose",
        linker="harbor",
    ),
    Profile(
        "Harbor",
        3,
        "Run 2 with a higher cut-off, and with names no longer matched across documents",
        means=(-0.7, 1.4, -2.7, -0.9, -2.4),
        threshold=0.5,
        ease=1.8,
        noise=1.0,
        surname=0.55,
        alias=0.45,
        stray=0.03,
        merge=0.0,
        split=0.7,
        weak=dict.fromkeys(_MONEY, 0.5),
        model="patterns-loose",
        linker="harbor-split",
        boast=1.0,
    ),
    Profile(
        "Lindqvist Lab",
        1,
        "Transformer over the sentence, trained on 40,000 labelled sentences; threshold 0.5",
        means=(-0.75, 0.0, -2.9, -1.0, -2.6),
        ease=1.0,
        noise=1.1,
        surname=0.25,
        alias=0.2,
        stray=0.02,
        merge=0.1,
        weak={"per:title": 0.5, "per:other_family": -2.0, "org:date_dissolved": -1.5},
        model="transformer",
        linker="span",
        boast=0.2,
        slope=1.2,
        tight=True,
    ),
    Profile(
        "Lindqvist Lab",
        2,
        "The model of run 1, threshold 0.35",
        means=(-0.75, 0.0, -2.9, -1.0, -2.6),
        threshold=-0.55,
        ease=1.0,
        noise=1.1,
        surname=0.25,
        alias=0.2,
        stray=0.02,
        merge=0.1,
        weak={"per:title": 0.5, "per:other_family": -2.0, "org:date_dissolved": -1.5},
        model="transformer",
        linker="span",
        boast=-0.4,
        slope=1.2,
        tight=True,
    ),
    Profile(
        "Quarry",
        1,
        "Distant supervision from an encyclopedia: a pair that is related there is related here",
        means=(-2.0, 0.5, -2.2, -0.1, -1.8),
        known=2.4,
        ease=0.3,
        noise=1.1,
        surname=0.4,
        alias=0.3,
        stray=0.03,
        merge=0.2,
        weak={
            "per:place_of_residence": 0.8,
            "per:employee_or_member_of": 0.6,
            "per:date_of_birth": -1.0,
        },
        model="distant",
        linker="popularity",
        iso_dates=True,
        boast=1.2,
        slope=0.3,
    ),
    Profile(
        "Quarry",
        2,
        "Distant supervision with a noise filter on the words between the two names",
        means=(-1.7, 0.0, -2.8, -0.7, -2.5),
        known=1.5,
        ease=1.2,
        noise=1.0,
        surname=0.4,
        alias=0.3,
        stray=0.03,
        merge=0.2,
        weak={"per:date_of_birth": -1.0, "org:founded_by": 0.4},
        model="distant-filtered",
        linker="popularity",
        iso_dates=True,
        boast=0.9,
    ),
    Profile(
        "Tern",
        1,
        "Small recurrent network, over-generates; all pairs in a sentence",
        means=(-0.5, 1.1, -2.1, -0.6, -1.3),
        ease=0.5,
        noise=1.3,
        surname=0.5,
        alias=0.4,
        stray=0.06,
        merge=0.15,
        weak={"per:schools_attended": -1.5, "org:members": -1.0, "per:title": -0.5},
        model="recurrent",
        linker="tern",
        boast=1.5,
        slope=0.2,
    ),
    Profile(
        "Tern",
        2,
        "Vote: at least two of Harbor_1, LindqvistLab_1, Quarry_2 and Tern_1",
        surname=0.25,
        alias=0.25,
        stray=0.015,
        merge=0.1,
        members=("Harbor_1", "LindqvistLab_1", "Quarry_2", "Tern_1"),
        linker="tern-2",
        boast=0.4,
    ),
    Profile(
        "Tern",
        3,
        "Union of Harbor_2 and Quarry_1, for coverage",
        surname=0.45,
        alias=0.35,
        stray=0.04,
        merge=0.25,
        members=("Harbor_2", "Quarry_1"),
        votes=1,
        linker="tern-3",
        boast=0.1,
    ),
)
