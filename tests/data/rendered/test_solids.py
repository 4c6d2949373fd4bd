"""Solids: symmetry groups by counting, classes of rotations, and images that depend on the class alone."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest

from polariscope.core import files
from polariscope.core.errors import InputError
from polariscope.core.seeds import generator
from polariscope.data.dataset import family
from polariscope.data.rendered import solids
from polariscope.data.rendered.solids import SOLIDS, SolidsDataset
from polariscope.rendering import rotations, scan

ORDERS = {"tetrahedron": 12, "cube": 24, "icosahedron": 60}
DATA = SolidsDataset(image_size=32, n_rotations=400)


def random_rotations(n: int) -> np.ndarray:
    return rotations.uniform(generator(0, "rotations").uniform(size=(n, 3)))


def symmetries(solid: str) -> np.ndarray:
    """Rotations after which the solid looks the same; of those about an axis, some."""
    if solid in ORDERS:
        return solids.rotation_group(solid)
    turns = [rotations.about(np.array([0, 0, 1.0]), angle) for angle in (0.0, 1.0, 2.5, math.pi)]
    over = rotations.about(np.array([math.cos(0.3), math.sin(0.3), 0]), math.pi)
    return np.array(
        turns if solid == "cone" else [*turns, *(rotations.multiply(over, turn) for turn in turns)]
    )


@pytest.mark.parametrize(("solid", "order"), ORDERS.items())
def test_groups_have_their_order_and_permute_the_corners(solid, order):
    group, corners = solids.rotation_group(solid), solids.mesh_of(solid, 64).corners
    assert len(group) == order
    seen = set()
    for matrix in rotations.matrices(group):
        distances = np.linalg.norm((corners @ matrix.T)[:, np.newaxis] - corners, axis=2)
        assert (distances.min(axis=1) < 1e-9).all()
        seen.add(tuple(distances.argmin(axis=1)))
    assert len(seen) == order
    # orbits: one of corners, and its length times the turns that keep a corner is the order
    keeping = sum(permutation[0] == 0 for permutation in seen)
    assert len({permutation[0] for permutation in seen}) * keeping == order
    assert len(corners) * keeping == order


@pytest.mark.parametrize("solid", SOLIDS)
def test_corners_lie_on_the_unit_sphere(solid):
    np.testing.assert_allclose(np.linalg.norm(solids.mesh_of(solid, 64).corners, axis=1), 1)


@pytest.mark.parametrize(("solid", "order"), ORDERS.items())
def test_one_rotation_in_as_many_as_the_group_has_is_reduced(solid, order):
    some = random_rotations(6000)
    share = (np.abs(solids.reduce(solid, some) - some).max(axis=1) < 1e-9).mean()
    expected = 0.5 / order  # q and −q are drawn alike
    assert abs(share - expected) < 4 * math.sqrt(expected / 6000)


@pytest.mark.parametrize("solid", SOLIDS)
def test_the_reduced_quaternion_is_a_function_of_the_class(solid):
    some = random_rotations(30)
    reduced = solids.reduce(solid, some)
    for symmetry in symmetries(solid):
        np.testing.assert_allclose(
            solids.reduce(solid, rotations.multiply(some, symmetry)), reduced, atol=1e-7
        )
        np.testing.assert_allclose(solids.reduce(solid, -some), reduced, atol=1e-12)
    np.testing.assert_allclose(solids.reduce(solid, reduced), reduced, atol=1e-9)


@pytest.mark.parametrize("solid", SOLIDS)
def test_rotations_that_are_one_class_give_one_picture_and_others_another(solid):
    mesh = solids.mesh_of(solid, 48)
    some = random_rotations(3)
    for rotation in some:
        alike = rotations.matrices(rotations.multiply(rotation, symmetries(solid)))
        pictures = scan.pictures(mesh, alike, 48)
        # regular solids agree but for rounding; 96 faces in place of a curved one turn by up to half a face
        tolerance = 1e-9 if solid in ORDERS else 0.03
        assert abs(pictures - pictures[0]).mean() < tolerance
    different = rotations.multiply(some[0], rotations.about(np.array([1.0, 0.4, 0.2]), 0.3))
    both = rotations.matrices(np.stack([some[0], different]))
    one, other = scan.pictures(mesh, both, 48)
    assert abs(one - other).mean() > 0.01


def test_factors_are_the_shape_and_a_reduced_quaternion_with_its_sign_fixed():
    factors = DATA.factors(np.arange(len(DATA)))
    assert len(DATA) == 2000
    assert len(SolidsDataset()) == 100_000
    np.testing.assert_array_equal(factors[:, 0], np.repeat(range(5), 400))
    np.testing.assert_allclose(np.linalg.norm(factors[:, 1:], axis=1), 1)
    assert (factors[:, 1] >= 0).all()
    for shape, solid in enumerate(SOLIDS):
        quaternions = factors[factors[:, 0] == shape][:, 1:]
        np.testing.assert_allclose(solids.reduce(solid, quaternions), quaternions, atol=1e-6)
    assert (factors[1200:, 4] == 0).all(), "cones and cylinders are only tilted"


def test_directions_and_rotations_are_spread_evenly():
    """Nine shares of the sphere are within 0.2/√n; those of random points stray by 0.36/√n or more on average."""
    n = 4000
    axes = rotations.matrices(solids.reduced_rotations("cone", n, 0))[:, :, 2]
    for cap in (-0.6, 0.1, 0.7):
        for direction in np.eye(3):
            assert abs((axes @ direction > cap).mean() - (1 - cap) / 2) < 0.2 / math.sqrt(n)
    # undo the reduction of the tetrahedron's: all its classes together are all rotations, E q qᵀ = 1/4
    quaternions = solids.reduced_rotations("tetrahedron", n, 0)
    every = rotations.multiply(quaternions[:, np.newaxis], solids.rotation_group("tetrahedron"))
    np.testing.assert_allclose(np.einsum("nga,ngb->ab", every, every) / n / 12, np.eye(4) / 4, atol=2e-3)


def test_fewer_rotations_are_the_first_of_more_and_seeds_differ():
    for solid in SOLIDS:
        few, many = (solids.reduced_rotations(solid, n, 0) for n in (100, 300))
        np.testing.assert_array_equal(few, many[:100])
        assert (solids.reduced_rotations(solid, 100, 1) != few).any()


def test_all_images_differ():
    images = DATA.images(np.arange(len(DATA)))
    assert len({image.tobytes() for image in images}) == len(DATA)


def test_solids_fill_the_picture_but_stay_off_its_border():
    images = DATA.images(np.arange(0, len(DATA), 7))[:, 0]
    for border in (images[:, :2], images[:, -2:], images[:, :, :2], images[:, :, -2:]):
        assert not border.any()
    assert images.any(axis=0).mean() > 0.5


def test_images_do_not_depend_on_how_they_are_divided_into_chunks(monkeypatch):
    indices = generator(0, "chunks").integers(len(DATA), size=60)
    images = DATA.images(indices)
    monkeypatch.setattr(solids, "_CHUNK", 1)
    np.testing.assert_array_equal(DATA.images(indices), images)


@pytest.mark.parametrize("image_size", [16, 128])
def test_drawing_takes_no_more_memory_than_is_stated(image_size):
    data = SolidsDataset(image_size=image_size)
    solids.reduced_rotations.cache_clear()
    tracemalloc.start()
    data.values(generator(0, "memory").integers(len(data), size=64))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert data.footprint().memory_bytes >= peak


def test_the_look_alike_says_what_it_is():
    assert "not the original" in DATA.note
    assert DATA.column("shape")[::400].tolist() == list(SOLIDS)
    assert family.traits("solids")["original"] == "symsol"
    assert DATA.fingerprint != files.digest(DATA.describe())


def test_options_out_of_range_are_refused():
    with pytest.raises(InputError, match="image_size must be at least 8"):
        SolidsDataset(7)
    with pytest.raises(InputError, match="n_rotations must be at least 1"):
        SolidsDataset(n_rotations=0)
