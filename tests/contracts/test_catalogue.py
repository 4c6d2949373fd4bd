"""What is read from the files of a family is what its members declare when they are opened."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys

import pytest

import polariscope
from polariscope.core.catalogue import read_catalogue
from polariscope.core.errors import InputError
from polariscope.core.option_values import describe, is_switch
from polariscope.core.options import options_of


def without_parameters(doc: str) -> str:
    """A docstring without what it says of arguments, of which decorators add some."""
    return re.sub(r"(?:^:param .*\n?(?:[ \t]+.*\n?)*)+\n?", "", doc, flags=re.MULTILINE).strip()


@pytest.mark.parametrize("name", polariscope._FAMILIES)
def test_a_catalogue_has_the_members_options_and_words_of_its_family(name):
    family, catalogue = getattr(polariscope, name), read_catalogue(polariscope._FAMILIES[name])
    assert catalogue.noun == family.noun
    assert list(catalogue) == list(family)
    for member in family:
        opened, read = options_of(family[member]), catalogue[member].declared_options
        assert list(read) == list(opened)
        for option in opened:
            assert read[option].default == opened[option].default
            assert read[option].help == opened[option].help
            assert describe(read[option].annotation) == describe(opened[option].annotation)
            assert is_switch(read[option].annotation) == is_switch(opened[option].annotation)
        assert catalogue[member].summary == family.summary(member)
        doc = inspect.getdoc(family[member]) or ""
        assert without_parameters(catalogue[member].doc) == without_parameters(doc)


def test_reading_opens_no_member_and_no_torch():
    script = (
        "import sys, polariscope\n"
        "from polariscope.core.catalogue import read_catalogue\n"
        "for home in polariscope._FAMILIES.values(): read_catalogue(home)\n"
        "print('torch' in sys.modules, *[n for n in sys.modules if n.startswith('polariscope.')])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    torch, *modules = done.stdout.split()
    assert torch == "False"
    assert all(module.startswith("polariscope.core") for module in modules)


def test_an_unknown_member_is_refused_with_the_nearest():
    with pytest.raises(InputError, match=r"no objective named 'bta'.* Did you mean 'beta'"):
        read_catalogue("polariscope.objectives")["bta"]
