"""The registry: a family's folder is its list."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import polariscope as ps
from polariscope.core.errors import InputError
from polariscope.core.options import build, options_of
from polariscope.core.registry import Family

INIT = """
    from polariscope.core.registry import open_family

    stone = family = open_family(__name__, "stone", traits=("hardness",))
"""
QUARTZ = '''
    import dataclasses
    from stones import stone

    @stone("quartz", hardness=7)
    @dataclasses.dataclass(frozen=True)
    class Quartz:
        """Silicon dioxide.

        More about it.
        """

        colour: str = "clear"
        """Its colour."""
'''


@pytest.fixture
def stones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Family]]:
    """Write a family package with the given files and open it."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def make(**sources: str) -> Family:
        folder = tmp_path / "stones"
        folder.mkdir()
        for name, source in sources.items():
            file = folder / f"{name.replace('__', '/')}.py"
            file.parent.mkdir(exist_ok=True)
            (file.parent / "__init__.py").touch()
            file.write_text(textwrap.dedent(source))
        (folder / "__init__.py").write_text(textwrap.dedent(INIT))
        import stones  # type: ignore[import-not-found]

        return stones.family

    yield make
    for name in [name for name in sys.modules if name == "stones" or name.startswith("stones.")]:
        del sys.modules[name]


def test_a_dropped_file_is_found_by_lookup_listing_traits_summary_and_options(
    stones: Callable[..., Family],
) -> None:
    without = ["opal"]
    family = stones(
        quartz=QUARTZ,
        opal="""
        from stones import stone

        @stone("fire-opal", hardness=6)
        def fire_opal(light, *, angle: float = 30.0) -> float:
            "Play of colour."
            return angle
        """,
    )
    assert list(family) == ["fire-opal", "quartz"]
    assert len(family) == 2
    assert "quartz" in family
    assert without[0] not in family
    assert family.traits("quartz") == {"hardness": 7}
    assert family.summary("quartz") == "Silicon dioxide."
    assert family.summary("fire-opal") == "Play of colour."
    assert repr(family) == "<stones: fire-opal, quartz>"
    assert build(family, "quartz", {"colour": "rose"}).colour == "rose"
    assert options_of(family["quartz"])["colour"].help == "Its colour."
    assert options_of(family["fire-opal"])["angle"].default == 30.0
    assert family.name_of(build(family, "quartz")) == family.name_of(family["quartz"]) == "quartz"
    assert family.name_of(family["fire-opal"]) == "fire-opal"


def test_a_member_is_an_attribute_with_underscores(stones: Callable[..., Family]) -> None:
    rose = QUARTZ.replace('"quartz"', '"rose-quartz"')
    family = stones(rose_quartz=rose)
    assert family.rose_quartz is family["rose-quartz"]
    assert "rose_quartz" in dir(family)
    with pytest.raises(AttributeError, match=r"no stone named 'granite'; there are rose_quartz\."):
        _ = family.granite


def test_asking_for_one_member_opens_its_file_only(stones: Callable[..., Family]) -> None:
    family = stones(quartz=QUARTZ, bomb="raise RuntimeError('opened')")
    assert family["quartz"] is sys.modules["stones.quartz"].Quartz
    assert "quartz" in family
    assert family.name_of(family["quartz"]) == "quartz"
    with pytest.raises(RuntimeError, match="opened"):
        list(family)


def test_whether_there_is_a_file_of_a_name_is_told_without_opening_it(stones: Callable[..., Family]) -> None:
    family = stones(quartz="raise RuntimeError('opened')", support__kiln="")
    assert family.has("quartz")
    with pytest.raises(RuntimeError, match="opened"):
        family.has("support")  # a folder is not a member, so the others are looked through


def test_an_unknown_name_is_refused_with_the_nearest_one(stones: Callable[..., Family]) -> None:
    family = stones(quartz=QUARTZ)
    with pytest.raises(
        InputError, match=r"no stone named 'quarz'; there are quartz\. Did you mean 'quartz'\?"
    ):
        family["quarz"]
    with pytest.raises(InputError, match=r"no stone named 'granite'; there are quartz\.$"):
        family.traits("granite")


def test_a_family_without_members_says_so(stones: Callable[..., Family]) -> None:
    with pytest.raises(InputError, match=r"no stone named 'quartz'; there are none\."):
        stones()["quartz"]


def test_the_folder_is_read_once(stones: Callable[..., Family], monkeypatch: pytest.MonkeyPatch) -> None:
    family = stones(quartz=QUARTZ)
    assert list(family) == ["quartz"]
    monkeypatch.setattr("pkgutil.iter_modules", lambda _: pytest.fail("the folder was read again"))
    assert family["quartz"]
    assert len(family) == 1


def test_what_members_share_is_not_opened_as_a_member(stones: Callable[..., Family]) -> None:
    family = stones(quartz=QUARTZ, support__kiln="raise RuntimeError('opened')")
    assert list(family) == ["quartz"]


def test_two_members_of_one_name_in_two_files_are_refused(stones: Callable[..., Family]) -> None:
    family = stones(quartz=QUARTZ, rock=QUARTZ)
    with pytest.raises(
        InputError, match=r"two stones are named 'quartz': in stones\.quartz and stones\.rock"
    ):
        list(family)


def test_two_members_of_one_name_in_one_file_are_refused(stones: Callable[..., Family]) -> None:
    twice = """
    from stones import stone

    @stone("jade", hardness=6)
    def jade(): "Green."

    @stone("jade", hardness=7)
    def jadeite(): "Greener."
    """
    with pytest.raises(InputError, match="two stones are named 'jade'"):
        list(stones(jade=twice))


def test_functions_of_one_name_are_refused_although_a_type_checker_wraps_them(
    stones: Callable[..., Family],
) -> None:
    # Wrapped functions all claim to be written in the wrapper's file.
    wrapped = """
    from beartype import beartype
    from jaxtyping import jaxtyped
    from stones import stone

    @stone("jade", hardness=6)
    @jaxtyped(typechecker=beartype)
    def {name}(x: int) -> int: return x
    """
    with pytest.raises(InputError, match="two stones are named 'jade'"):
        list(stones(one=wrapped.format(name="jade"), two=wrapped.format(name="jade")))


def test_reading_a_members_file_again_is_no_duplicate(stones: Callable[..., Family]) -> None:
    import importlib

    family = stones(quartz=QUARTZ)
    first = family["quartz"]
    importlib.reload(sys.modules["stones.quartz"])
    assert list(family) == ["quartz"]
    assert family["quartz"] is not first


def test_a_member_must_declare_the_traits_of_its_family(stones: Callable[..., Family]) -> None:
    family = stones()
    with pytest.raises(InputError, match="stone 'talc' must declare hardness in its decorator"):
        family("talc")
    with pytest.raises(InputError, match="must declare hardness"):
        family("talc", softness=1)


@pytest.mark.parametrize(
    "name", ["", "Quartz", "rose quartz", "rose_quartz", "-rose", "rose-", "rose--quartz", "é"]
)
def test_a_name_is_lower_case_words_joined_by_hyphens(stones: Callable[..., Family], name: str) -> None:
    with pytest.raises(InputError, match="must be lower-case words joined by '-'"):
        stones()(name, hardness=1)


def test_what_is_not_registered_has_no_name(stones: Callable[..., Family]) -> None:
    @dataclasses.dataclass(frozen=True)
    class Pebble:
        """Found on a beach."""

    family = stones(quartz=QUARTZ)
    for stranger in (Pebble, Pebble(), len):
        with pytest.raises(InputError, match="is not a registered stone; there are quartz"):
            family.name_of(stranger)


def test_a_member_that_fails_to_open_is_not_hidden_and_can_be_repaired(
    stones: Callable[..., Family], tmp_path: Path
) -> None:
    family = stones(quartz="raise RuntimeError('cracked')")
    for _ in range(2):
        with pytest.raises(RuntimeError, match="cracked"):
            list(family)
    (tmp_path / "stones" / "quartz.py").write_text(textwrap.dedent(QUARTZ) + "\n# whole again\n")
    assert list(family) == ["quartz"]


def test_traits_are_copied_so_that_nobody_changes_them(stones: Callable[..., Family]) -> None:
    family = stones(quartz=QUARTZ)
    family.traits("quartz")["hardness"] = 0  # type: ignore[index]
    assert family.traits("quartz") == {"hardness": 7}


def test_families_of_the_package_are_asked_by_name() -> None:
    from polariscope.objectives.beta import BetaObjective

    assert ps.objectives["beta"] is BetaObjective
    assert {"beta", "vae"} <= set(ps.objectives)
    assert {"conv", "fc", "linear", "mlp"} <= set(ps.nets)
    with pytest.raises(InputError, match=r"no objective named 'betta'.*Did you mean 'beta'\?"):
        ps.objectives["betta"]


def test_importing_the_package_does_not_import_torch() -> None:
    check = "import sys, polariscope; dir(polariscope); assert not {'torch', 'numpy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", check], check=True, timeout=60)


def test_a_name_the_package_does_not_have_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'tarin'"):
        ps.tarin  # noqa: B018
