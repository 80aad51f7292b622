"""Who may import whom: the table of kbpo/README.md, executed."""

from __future__ import annotations

import ast
import functools
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.utils.module_loading import import_string

from annotation.interfaces.registry import INTERFACES
from annotation.platforms.registry import MARKETPLACES
from annotation.platforms.registry import platform_names as platform_names
from kbpo.tracks.registry import KINDS

ROOT = Path(__file__).resolve().parents[2]
OURS = {"estimators", "formats", "scoring", "kbpo", "annotation", "rehearsal"}
STANDARD = set(sys.stdlib_module_names) | {"__future__"}
DJANGO = {"django", "celery", "psycopg2", "rest_framework", "drf_spectacular", "redis"}

# room -> (rooms of ours, packages of others). `kbpo.tracks` means base, registry, models: never a
# kind of track.
BELOW = {"kbpo.analyse", "kbpo.clock", "kbpo.queue", "kbpo.prepared", "kbpo.environment"}
_NOUNS = {"kbpo.accounts", "kbpo.corpus", "kbpo.instances", "kbpo.tracks"}
_PAID = _NOUNS | {"kbpo.money", "kbpo.submissions"}
_DRAWN = _PAID | {
    "estimators",
    "kbpo.inclusion",
    "kbpo.pool",
    "kbpo.sampling",
    "kbpo.sampling.models",
    "kbpo.scores",
    "scoring",
}
MAY: dict[str, tuple[set[str], set[str]]] = {
    "estimators": (set(), {"numpy", "scipy"}),
    "formats": (set(), {"yaml"}),
    "scoring": ({"estimators"}, {"numpy", "scipy"}),
    "kbpo.analyse": (set(), DJANGO),
    "kbpo.clock": (set(), DJANGO),
    "kbpo.queue": (set(), DJANGO),
    "kbpo.prepared": (set(), DJANGO),
    "kbpo.accounts": (set(), DJANGO),
    "kbpo.corpus": ({"formats"}, DJANGO | {"numpy"}),
    "kbpo.instances": ({"kbpo.corpus"}, DJANGO),
    "kbpo.tracks": ({"formats", "kbpo.corpus", "kbpo.instances", "scoring"}, DJANGO | {"numpy"}),
    "kbpo.money": ({"kbpo.accounts", "kbpo.tracks"}, DJANGO),
    "kbpo.submissions": (_NOUNS | {"formats", "kbpo.money"}, DJANGO),
    "kbpo.tracks.texts": (
        _NOUNS - {"kbpo.accounts"} | {"estimators", "formats", "kbpo.submissions", "scoring"},
        DJANGO | {"numpy", "scipy", "sacrebleu", "rapidfuzz", "wordllama"},
    ),
    "kbpo.tracks.kbp": (
        _NOUNS - {"kbpo.accounts"} | {"estimators", "formats", "kbpo.submissions", "scoring"},
        DJANGO | {"numpy", "scipy"},
    ),
    "kbpo.scores": (_NOUNS | {"formats", "kbpo.submissions"}, DJANGO | {"numpy"}),
    "kbpo.pool": (
        {
            "estimators",
            "kbpo.corpus",
            "kbpo.sampling.models",
            "kbpo.scores",
            "kbpo.submissions",
            "kbpo.tracks",
            "scoring",
        },
        DJANGO | {"numpy", "scipy"},
    ),
    "kbpo.sampling.models": (_NOUNS | {"kbpo.money", "kbpo.submissions"}, DJANGO),
    "kbpo.inclusion": (
        _NOUNS | {"estimators", "kbpo.pool", "kbpo.sampling.models", "kbpo.submissions", "scoring"},
        DJANGO | {"numpy"},
    ),
    "kbpo.sampling": (
        _PAID | {"estimators", "kbpo.inclusion", "kbpo.pool", "kbpo.sampling.models", "scoring"},
        DJANGO | {"numpy", "scipy"},
    ),
    "kbpo.experts": (_DRAWN, DJANGO | {"numpy"}),
    "kbpo.evaluation": (_DRAWN | {"kbpo.experts"}, DJANGO | {"numpy", "scipy"}),
    "annotation": (
        _DRAWN | {"kbpo.experts", "kbpo.tracks.kbp", "kbpo.tracks.texts"},
        DJANGO | {"numpy", "boto3", "botocore"},
    ),
    "kbpo.releases": (
        _DRAWN | {"annotation", "kbpo.evaluation"},
        DJANGO | {"numpy", "scipy", "pyarrow"},
    ),
    "kbpo.web": (
        _DRAWN
        | {
            "kbpo.releases",
            "annotation",
            "formats",
            "kbpo.celery",
            "kbpo.embedded",
            "kbpo.evaluation",
            "kbpo.experts",
            "kbpo.tracks.texts",
            "kbpo.tracks.kbp",
            "rehearsal",
        },
        DJANGO | {"numpy"},
    ),
    "rehearsal": (
        _NOUNS - {"kbpo.instances"}
        | {
            "annotation",
            "formats",
            "kbpo.embedded",
            "kbpo.sampling",
            "kbpo.scores",
            "kbpo.submissions",
        },
        DJANGO | {"numpy", "boto3", "botocore"},
    ),
}

# Rooms of the crowd, from left to right: a room imports only rooms to its left, and its own.
CROWD = (
    {"models"},
    {"interfaces", "platforms"},
    {"budget"},
    {"workers"},
    {"quality"},
    {"questions"},
    {"hits"},
    {"labels"},
    {"marketplace"},
    {"desk"},
)

# Words that name a criterion, a distribution or an interface elsewhere, and mean something else
# here: a word more is a name.
MEANING_OTHERS: dict[str, set[str]] = {
    # A column of a table or of a file of a release: which instance a row is about.
    "kbpo.releases.write": {"instance"},
    "kbpo.sampling.models": {"instance"},
    "kbpo.scores.models": {"instance"},
    "kbpo.submissions.models": {"instance"},
    "scoring.release": {"instance"},
    "scoring.rescore": {"instance"},
    # How many entities of the world documents name.
    "kbpo.sampling.documents.second_stage": {"entities"},
    # The cluster of a mention in the file that a corpus came with.
    "kbpo.corpus.load": {"entity"},
    "kbpo.corpus.lookup": {"entity"},
    # A role that marked words have in a text.
    "kbpo.web.components.viewer": {"entity"},
}


def room_of(module: str) -> str:
    """The longest room that a module lies in; the module itself if it lies in none."""
    known = (*MAY, *BELOW, "kbpo.embedded", "kbpo.celery")
    inside = [room for room in known if module == room or module.startswith(room + ".")]
    return max(inside, key=len) if inside else module


@functools.cache
def modules() -> list[tuple[str, Path]]:
    return list(_modules())


def _modules() -> Iterator[tuple[str, Path]]:
    for top in sorted(OURS):
        for path in sorted((ROOT / top).rglob("*.py")):
            if "migrations" not in path.parts:
                parts = path.relative_to(ROOT).with_suffix("").parts
                yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


@functools.cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@functools.cache
def imports(path: Path) -> list[tuple[int, str]]:
    return list(_imports(path))


def _imports(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def forbidden(module: str, path: Path) -> Iterator[str]:
    room = room_of(module)
    if room not in MAY:
        return  # settings, urls, celery, embedded: the frame around the rooms
    ours, others = MAY[room]
    for line, name in imports(path):
        top = name.split(".")[0]
        target = room_of(name)
        if top in OURS:
            if not (target == room or target in ours or target in BELOW):
                yield f"{path.relative_to(ROOT)}:{line}: {room} may not import {name}"
        elif top not in STANDARD and top not in others:
            yield f"{path.relative_to(ROOT)}:{line}: {room} may not import {top}"


def test_a_module_imports_only_what_its_room_may() -> None:
    assert [error for module, path in modules() for error in forbidden(module, path)] == []


@pytest.mark.parametrize("name", ["settings", "urls", "celery", "wsgi"])
def test_the_frame_names_the_rooms_by_string_only(name: str) -> None:
    found = {target for _, target in imports(ROOT / "kbpo" / f"{name}.py")}
    ours = {one for one in found if one.split(".")[0] in {room.split(".")[0] for room in MAY}}
    assert ours <= {"kbpo.embedded", "kbpo.environment"}, (
        "an import here would be one that the table does not see"
    )


def place_in_the_crowd(module: str) -> int | None:
    """How far to the right a module's room lies; None outside the crowd."""
    parts = module.split(".")
    if parts[0] != "annotation" or len(parts) < 2:
        return None
    return next((place for place, rooms in enumerate(CROWD) if parts[1] in rooms), None)


def to_the_right(module: str, path: Path) -> Iterator[tuple[str, str]]:
    """Imports of a room of the crowd that does not lie to the left of the module's own."""
    here = place_in_the_crowd(module)
    for _, name in imports(path):
        there = place_in_the_crowd(name)
        if here is None or there is None or module.split(".")[1] == name.split(".")[1]:
            continue
        if there >= here:
            yield module, name.rsplit(".", 1)[0]


def test_a_room_of_the_crowd_imports_only_rooms_to_its_left() -> None:
    turned = [pair for module, path in modules() for pair in to_the_right(module, path)]
    assert turned == []


def test_every_module_of_the_crowd_lies_in_a_room() -> None:
    outside = {"annotation", "annotation.apps"}
    homeless = [
        module
        for module, _ in modules()
        if module.startswith("annotation") and place_in_the_crowd(module) is None
    ]
    assert set(homeless) <= outside


def test_an_interface_is_imported_by_its_own_room_alone() -> None:
    """Everybody else asks the registry: another interface touches no other file."""
    own = re.compile(r"annotation\.interfaces\.(?!shared\b|base\b|registry\b)\w+\.\w+")
    named = [
        f"{module} imports {name}"
        for module, path in modules()
        for _, name in imports(path)
        if own.match(name) and not module.startswith("annotation.interfaces.")
    ]
    assert named == []
    assert own.match("annotation.interfaces.relation.interface.Relation"), "it would be found"
    assert not own.match("annotation.interfaces.shared.payload.Pair")


# Rooms of the web, from left to right: a room imports only rooms to its left, and its own. Modules
# of the root are the first; `urls` knows all of them.
WEB = (
    *("http", "components", "public", "research", "judging", "marketplace", "desk", "api"),
    "management",
)
TURNED = {("public", "research"), ("public", "judging")}
"""What imports to its right still: public pages share what they show with these"""


def test_a_room_of_the_web_imports_only_rooms_to_its_left() -> None:
    def place(module: str) -> int | None:
        parts = module.split(".")
        if parts[:2] != ["kbpo", "web"] or len(parts) < 3 or parts[2] == "templatetags":
            return None
        return WEB.index(parts[2]) if parts[2] in WEB else 0

    turned = set()
    for module, path in modules():
        here = place(module)
        if here is None or module.endswith(".urls"):
            continue
        places = [there for _, name in imports(path) if (there := place(name)) is not None]
        turned |= {(WEB[here], WEB[there]) for there in places if there > here}
    assert turned == TURNED, "nothing new, and nothing that is gone"


def test_boto3_is_imported_in_one_module_on_each_side_of_the_wire() -> None:
    users = [
        m
        for m, p in modules()
        if any(n.split(".")[0] in ("boto3", "botocore") for _, n in imports(p))
    ]
    assert set(users) == {
        "annotation.platforms.mturk.client",
        "rehearsal.mturk.app",
    }


def test_nothing_outside_a_platform_imports_or_names_it() -> None:
    """Its settings, and what plays it, are named after it."""
    plays = ("rehearsal.", "kbpo.settings", "kbpo.web.management.commands.")
    naming = []
    for module, path in modules():
        if module.startswith(("annotation.platforms.", *plays)):
            continue
        for name in platform_names():
            room = f"annotation.platforms.{name}"
            if any(imported.startswith(room) for _, imported in imports(path)):
                naming.append(f"{module} imports {name}")
        words = {node.value for node in ast.walk(tree(path)) if isinstance(node, ast.Constant)}
        naming += [f"{module} names {name}" for name in MARKETPLACES if name in words]
    assert naming == []


def test_no_import_hides_in_a_function() -> None:
    """What must be imported late stands in a circle; third parties may be slow to import."""
    hidden = []
    for module, path in modules():
        for function in ast.walk(tree(path)):
            if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            for node in ast.walk(function):
                if not isinstance(node, ast.Import | ast.ImportFrom):
                    continue
                name = node.module if isinstance(node, ast.ImportFrom) else node.names[0].name
                if name and name.split(".")[0] in OURS:
                    hidden.append(f"{module}:{node.lineno} imports {name}")
    assert hidden == []


def names_of_kinds() -> set[str]:
    """The interfaces, and the criteria and distributions of every kind of track."""
    names = set(INTERFACES)
    for dotted in KINDS.values():
        kind = import_string(dotted)
        names |= {
            *(criterion.name for criterion in kind.measures.criteria),
            *kind.measures.distributions,
        }
    names.discard("form")  # an interface, and a word of every page
    return names


def test_no_further_module_names_what_belongs_to_a_kind_or_an_interface() -> None:
    """Predicates, criteria, distributions and interfaces are named where they live."""
    names = names_of_kinds()
    at_home = ("annotation.interfaces.", "kbpo.tracks.", "rehearsal.", "formats", "estimators")
    naming: dict[str, set[str]] = {}
    for module, path in modules():
        if module.startswith(at_home):
            continue
        for node in ast.walk(tree(path)):
            if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
                continue
            if node.value in names or re.fullmatch(r"(per|org|gpe):[a-z_]+", node.value):
                naming.setdefault(module, set()).add(node.value)
    assert naming == MEANING_OTHERS, "nothing new, and nothing that is gone"


def test_no_template_asks_which_interface_or_criterion_it_shows() -> None:
    """Templates of a kind or an interface are told apart by their folder."""
    names = "|".join(sorted(names_of_kinds()))
    asks = re.compile(rf"(?:==|!=|\bin)\s*[\"'](?:{names})[\"']|[\"'](?:{names})[\"']\s*(?:==|!=)")
    at_home = ("tracks/", "annotation/")
    found = [
        str(path.relative_to(ROOT / "templates"))
        for path in sorted((ROOT / "templates").rglob("*.html"))
        if asks.search(path.read_text())
    ]
    assert [path for path in found if not path.startswith(at_home)] == []


# What is found by its name, since whoever names it must not know it: each with a registry, a list
# of steps, an argument of a command, or, for what whoever asks people knows, a room's own module.
BY_STRING = {
    "annotation.interfaces.registry",
    "annotation.platforms.registry",
    "kbpo.celery",
    "kbpo.queue",
    "kbpo.single_worker",
    "kbpo.tracks.registry",
    "kbpo.web.management.commands.simulate",
}


def test_what_is_imported_by_string_hides_no_circle() -> None:
    using = {module for module, path in modules() if "import_string(" in path.read_text()}
    assert using == BY_STRING


def test_an_interface_and_a_platform_are_one_directory_each() -> None:
    home = ROOT / "annotation"
    for name in INTERFACES:
        parts = {path.name for path in (home / "interfaces" / name).iterdir()}
        wanted = {"interface.py", "page.html", "page.js", "tutorial.json"}
        # What a form asks is said by each question: there is nothing to teach beforehand.
        assert wanted - ({"tutorial.json"} if name == "form" else set()) <= parts, name
    for name in platform_names():
        assert (home / "platforms" / name / "platform.py").is_file()
    loose = {path.stem for path in (home / "interfaces").glob("*.py")}
    assert loose == {"__init__", "base", "registry"}


def rooms() -> list[Path]:
    """The directories of modules, but for what belongs to Django, and single plug-ins."""
    plug_ins = {"management", "commands", "migrations", "templatetags", *INTERFACES}
    rooms = []
    for top in ("kbpo", "annotation", "rehearsal"):
        for path in sorted((ROOT / top).rglob("__init__.py")):
            room = path.parent
            is_platform = {module.stem for module in room.glob("*.py")} == {"__init__", "platform"}
            is_plug_in = room.name in plug_ins or is_platform
            if not is_plug_in and "commands" not in room.parts:
                rooms.append(room)
    return rooms


@pytest.mark.parametrize("room", [pytest.param(r, id=str(r.relative_to(ROOT))) for r in rooms()])
def test_every_room_says_in_twenty_lines_what_comes_in_and_what_goes_out(room: Path) -> None:
    assert (room / "README.md").is_file(), "a room of several modules has a README.md"
    text = (room / "README.md").read_text()
    if room == ROOT / "kbpo":
        return  # the map of the whole house
    assert len(text.splitlines()) <= 20
    assert "**In:**" in text and "**Out:**" in text
    assert all(len(line) <= 120 for line in text.splitlines())


HTTP = ("django.http", "django.shortcuts", "django.views", "django.template", "rest_framework")


def test_http_stays_in_the_web() -> None:
    users = [m for m, p in modules() if any(n.startswith(HTTP) for _, n in imports(p))]
    assert users and all(module.startswith("kbpo.web") for module in users), users


def test_addresses_are_made_in_the_web() -> None:
    """A platform must be told where its pages are before anybody asks for one."""
    users = {m for m, p in modules() if any(n.startswith("django.urls") for _, n in imports(p))}
    outside = {module for module in users if not module.startswith("kbpo.web")}
    assert outside == {"annotation.platforms.proof", "kbpo.urls", "kbpo.wsgi"}


def test_no_module_asks_the_machine_for_the_time() -> None:
    """What one machine writes another compares: the time is the database's (`kbpo.clock.now`)."""
    asked = re.compile(r"timezone\.now\b|datetime\.now\(|\btime\.time\(\)")
    own = {"kbpo.clock", "kbpo.alive"}  # the second compares with files of its own machine
    rooms = [(module, path) for module, path in modules() if module.startswith(("kbpo", "annot"))]
    assert [m for m, path in rooms if m not in own and asked.search(path.read_text())] == []


def test_nothing_that_is_held_in_the_database_outlives_its_transaction() -> None:
    """Behind a pooler of transactions the next one of a session may be somebody else's. What
    `kbpo.clock.apps` asks for once more is the same for everybody.
    """
    kept = re.compile(
        r"pg_(?:try_)?advisory_(?:un)?lock|\bSET SESSION\b|(?i:\bLISTEN \w+;?\")|WITH HOLD"
        r"|set_config\([^)]*, ?false\)"
    )
    rooms = [(module, path) for module, path in modules() if module.startswith(("kbpo", "annot"))]
    found = [module for module, path in rooms if kept.search(path.read_text())]
    assert found == ["kbpo.clock.apps"]
    assert kept.search("SELECT pg_advisory_lock(1)") and kept.search("pg_try_advisory_lock(%s)")
    assert not kept.search("SELECT pg_try_advisory_xact_lock(1), set_config('a', 'b', true)")


def test_a_module_that_a_docstring_or_a_readme_names_is_there() -> None:
    """By the end of its path, as `settle.py` or `annotation/labels/settle.py`."""
    named = re.compile(r"`((?:\w+/)*\w+\.py)`")
    files = [path for path in ROOT.rglob("*.py") if ".venv" not in path.parts]
    ends = set()
    for path in files:
        parts = path.relative_to(ROOT).parts
        for n in range(len(parts)):
            ends.add("/".join(parts[n:]))
    tops = [ROOT / top for top in sorted(OURS)]
    texts = [path for top in tops for ending in ("*.py", "*.md") for path in top.rglob(ending)]
    gone = [
        f"{path.relative_to(ROOT)} names {name}"
        for path in [*texts, ROOT / "CONTRIBUTING.md"]
        for name in named.findall(path.read_text())
        if name not in ends
    ]
    assert gone == []
