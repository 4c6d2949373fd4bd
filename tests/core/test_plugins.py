"""Members of other packages: found by entry points, imported when asked for, and never in the way of built-ins."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from polariscope.core.errors import InputError
from polariscope.core.plugins import PluginError, plugins_of
from polariscope.core.registry import Family

OWN = """
    from polariscope.core.registry import open_family

    rock = family = open_family(__name__, "rock")
"""
GRANITE = '''
    from rocks import rock

    @rock("granite")
    def granite(*, grain: int = 3) -> int:
        """Coarse and hard."""
        return grain
'''
Package = Callable[..., None]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on the path where packages are installed."""
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.partition(".")[0] in ("rocks", "quarry", "pit"):
            del sys.modules[name]


@pytest.fixture
def rocks(site: Path) -> Family:
    """A family with one built-in member."""
    (site / "rocks").mkdir()
    (site / "rocks" / "__init__.py").write_text(textwrap.dedent(OWN))
    (site / "rocks" / "granite.py").write_text(textwrap.dedent(GRANITE))
    import rocks  # type: ignore[import-not-found]

    return rocks.family


@pytest.fixture
def install(site: Path, monkeypatch: pytest.MonkeyPatch) -> Package:
    """Install a package: its metadata, and a module of its name."""

    def add(
        package: str, entries: dict[str, str], source: str = "", group: str = "polariscope.rocks"
    ) -> None:
        metadata = site / package / f"{package}-1.2.dist-info"
        metadata.mkdir(parents=True)
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.2\n")
        lines = [f"[{group}]", *(f"{name} = {value}" for name, value in entries.items())]
        (metadata / "entry_points.txt").write_text("\n".join(lines))
        (site / package / f"{package}.py").write_text(textwrap.dedent(source))
        monkeypatch.syspath_prepend(str(site / package))

    return add


def slate(name: str = "slate") -> str:
    return GRANITE.replace("granite", name).replace("Coarse and hard", "Splits into plates")


def test_names_are_listed_without_importing_and_a_member_is_opened_when_it_is_asked_for(
    rocks: Family, install: Package
) -> None:
    install("quarry", {"slate": "quarry:slate"}, slate())
    assert list(rocks) == ["granite", "slate"]
    assert len(rocks) == 2
    assert rocks.has("slate")
    assert "slate" in dir(rocks)
    assert repr(rocks) == "<rocks: granite, slate>"
    assert rocks.plugins["slate"].package == "quarry 1.2"
    with pytest.raises(
        InputError, match=r"no rock named 'slat'; there are granite, slate\. Did you mean 'slate'\?"
    ):
        rocks["slat"]
    assert "quarry" not in sys.modules
    assert rocks["slate"] is sys.modules["quarry"].slate is rocks.slate
    assert rocks.summary("slate") == "Splits into plates."
    assert rocks.name_of(rocks["slate"]) == "slate"


def test_built_ins_are_found_without_reading_metadata(rocks: Family, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "polariscope.core.plugins.plugins_of", lambda group: pytest.fail("metadata were read")
    )
    assert rocks["granite"]() == 3
    assert "granite" in rocks
    assert rocks.has("granite")


def test_packages_without_entry_points_for_a_family_are_not_its_members(
    rocks: Family, install: Package
) -> None:
    install("quarry", {"slate": "quarry:slate"}, slate(), group="polariscope.stones")
    assert list(rocks) == ["granite"]
    assert list(plugins_of("polariscope.stones")) == ["slate"]


@pytest.mark.parametrize(
    ("source", "value", "reason"),
    [
        ("import no_such_library", "quarry:slate", "ModuleNotFoundError: No module named 'no_such_library'"),
        ("1 / 0", "quarry:slate", "ZeroDivisionError: division by zero"),
        (slate(), "quarry:marble", "AttributeError: module 'quarry' has no attribute 'marble'"),
        (slate(), "nowhere:slate", "ModuleNotFoundError: No module named 'nowhere'"),
        ("def slate(): ...", "quarry:slate", "its module does not register a rock of this name"),
        (
            slate() + "\n    other = 1\n",
            "quarry:other",
            "the object is not the rock that its module registers",
        ),
        (slate() + "\n    raise OSError('late')\n", "quarry:slate", "OSError: late"),
    ],
)
def test_a_broken_one_is_refused_with_its_package_and_leaves_the_others_alone(
    rocks: Family, install: Package, source: str, value: str, reason: str
) -> None:
    install("quarry", {"slate": value}, source)
    for _ in range(2):
        with pytest.raises(PluginError) as refused:
            rocks["slate"]
        assert str(refused.value) == (
            f"rock 'slate' of the package quarry 1.2 cannot be opened ({value}): {reason}; "
            "update or uninstall this package."
        )
        sys.modules.pop("quarry", None)
    assert list(rocks) == ["granite", "slate"]
    assert rocks["granite"]() == 3
    with pytest.warns(UserWarning, match=r"rock 'slate' of the package quarry 1\.2 cannot be opened"):
        assert list(rocks.working()) == ["granite"]
    assert "slate" not in rocks.opened


def test_a_built_in_wins_over_a_plug_in_of_its_name_which_is_announced_once(
    rocks: Family, install: Package
) -> None:
    install("quarry", {"granite": "quarry:granite", "slate": "quarry:slate"}, slate())
    with pytest.warns(
        UserWarning,
        match=r"rock 'granite' of the package quarry 1\.2 is ignored, because a built-in one has this name",
    ):
        assert list(rocks) == ["granite", "slate"]
    assert list(rocks) == ["granite", "slate"]  # a second warning would be an error
    assert rocks["granite"].__module__ == "rocks.granite"
    assert rocks["slate"].__module__ == "quarry"


def test_a_module_that_registers_the_name_of_a_built_in_is_refused_although_it_comes_first(
    rocks: Family, install: Package
) -> None:
    install("quarry", {"slate": "quarry:slate"}, slate() + slate("granite"))
    with pytest.raises(
        PluginError, match="quarry defines a rock 'granite', which is the name of a built-in one"
    ):
        rocks["slate"]
    assert rocks["granite"].__module__ == "rocks.granite"


def test_two_packages_with_one_name_are_both_refused(rocks: Family, install: Package) -> None:
    install("quarry", {"slate": "quarry:slate"}, slate())
    install("pit", {"slate": "pit:slate"}, slate())
    with pytest.raises(
        PluginError, match=r"two rocks are named 'slate', in (pit 1\.2 and quarry|quarry 1\.2 and pit) 1\.2"
    ):
        rocks["slate"]
    assert not {"quarry", "pit"} & set(sys.modules)


def test_a_family_without_a_group_has_no_plug_ins() -> None:
    assert Family(("polariscope.core",), "thing").plugins == {}


def test_help_does_not_read_metadata() -> None:
    script = (
        "import sys\nfrom polariscope.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass\n"
        "assert 'polariscope.core.plugins' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
