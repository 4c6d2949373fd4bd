"""Solids in all rotations, with one image for each class of rotations that look the same, as in SymSol."""

from __future__ import annotations

import dataclasses
import functools
import math
import types
from typing import Annotated

import numpy as np
from annotated_types import Ge
from jaxtyping import Float, UInt8
from numpy.typing import ArrayLike

from polariscope.core import files
from polariscope.core.seeds import generator
from polariscope.data.dataset import AbstractDataset, dataset
from polariscope.data.footprint import Footprint, batch_bytes
from polariscope.rendering import rotations, scan

SOLIDS = ("tetrahedron", "cube", "icosahedron", "cone", "cylinder")
_DRAWING = 1  # part of the fingerprint; increase it whenever an image changes
_GOLDEN = (1 + math.sqrt(5)) / 2
_CHUNK = 2**21  # maximum bytes of a temporary array, which then fits the cache of a processor


@dataset("solids", original="symsol")
@dataclasses.dataclass(frozen=True)
class SolidsDataset(AbstractDataset):
    r"""Grey tetrahedron, cube, icosahedron, cone and cylinder over all rotations, without symmetric duplicates.

    A look-alike of SymSol, not the original. A solid whose rotation group is G looks the same after the rotations q
    and q g, g ∈ G. Each class is represented by its *reduced* unit quaternion, the one of ±q g with the largest w:

    =============  =======================  ===========================
    solid          rotation group           reduced quaternions
    =============  =======================  ===========================
    tetrahedron    12 elements              1/12 of all rotations
    cube           24                       1/24
    icosahedron    60                       1/60
    cone           turns about its axis     directions: z = 0
    cylinder       these, and turned over   half the directions: z = 0
    =============  =======================  ===========================

    Factors: shape 5, in this order, and the reduced quaternion w, x, y, z (continuous; w ≥ 0 fixes the sign). Rotations
    do not form a grid. For each solid, points of a low-discrepancy sequence (i α mod 1, with powers of the generalised
    golden ratio) are mapped uniformly to rotations, and the first ``n_rotations`` reduced ones are used. This gives
    5 · ``n_rotations`` images, 100,000 by default. Images are rendered on request and not cached. The quaternions take
    32 bytes each, 3 MB in all, and computing them takes 30 MB.

    Distinct images: all 100,000 differ at 64 pixels, because no two show the same solid in equivalent rotations.

    The solid is seen in perspective against black, lit from the upper left. Faces are flat and traced by their edges,
    exactly along rows. Cone and cylinder have 96 flat faces around their axis, or more in images above 96 pixels.

    Reference: Murphy et al., Implicit-PDF: Non-Parametric Representation of Probability Distributions on the Rotation
    Manifold (murphy2021). Differences: one image of each class, and no solids with marks.

    >>> data = SolidsDataset(n_rotations=100)
    >>> len(data), data.images([0]).shape, data.factors([499]).shape
    (500, (1, 1, 64, 64), (1, 5))
    """

    image_size: Annotated[int, Ge(8)] = 64
    """Height and width in pixels, at least 8."""
    n_rotations: Annotated[int, Ge(1)] = 20_000
    """Number of rotations of each solid."""
    seed: int = 0
    """Seed of the start of the sequence of rotations."""

    factor_names = ("shape", "w", "x", "y", "z")
    factor_sizes = (5, 0, 0, 0, 0)
    factor_kinds = ("categorical", "continuous", "continuous", "continuous", "continuous")
    factor_classes = types.MappingProxyType({"shape": SOLIDS})
    citation = "murphy2021"
    note = "a look-alike of SymSol without symmetric duplicates, not the original"

    @property
    def shape(self) -> tuple[int, ...]:
        return (1, self.image_size, self.image_size)

    def __len__(self) -> int:
        return len(SOLIDS) * self.n_rotations

    @property
    def fingerprint(self) -> str:
        """Hash of the options and of the version of the renderer: results of another version are not reused."""
        return files.digest({**self.describe(), "drawing": _DRAWING})

    def footprint(self) -> Footprint:
        """Return the memory of the quaternions, of computing them or of rendering, and of a batch."""
        n_arrays = len(SOLIDS) + 2  # three copies of one solid's exist while they are computed
        held = n_arrays * self.n_rotations * 4 * 8
        scratch = 32 * 2**20 + 128 * self.image_size**2
        note = "Quaternions are held in memory; images are rendered on request."
        return Footprint(held + scratch + batch_bytes(self.n_features), 0, note)

    def factors(self, indices: ArrayLike | int) -> Float[np.ndarray, "sample factor"]:
        shapes, rows = np.divmod(self.check_indices(indices), self.n_rotations)
        factors = np.empty((len(shapes), 5))
        factors[:, 0] = shapes
        for shape in np.unique(shapes):
            is_here = shapes == shape
            factors[is_here, 1:] = reduced_rotations(SOLIDS[shape], self.n_rotations, self.seed)[
                rows[is_here]
            ]
        return factors

    def images(self, indices: ArrayLike | int) -> UInt8[np.ndarray, "sample channel height width"]:
        factors = self.factors(indices)
        images = np.empty((len(factors), *self.shape), dtype=np.uint8)
        turns = rotations.matrices(factors[:, 1:])
        for shape, solid in enumerate(SOLIDS):
            members = np.flatnonzero(factors[:, 0] == shape)
            mesh = mesh_of(solid, self.image_size)
            # Temporary arrays grow with the edges and with the rows of the pictures.
            chunk = max(1, _CHUNK // (self.image_size * 8 * max(2 * self.image_size, len(mesh.edges))))
            for begin in range(0, len(members), chunk):
                rows = members[begin : begin + chunk]
                drawn = scan.pictures(mesh, turns[rows], self.image_size)
                images[rows, 0] = np.rint(drawn * 255)  # rounding also removes small deviations from 0 … 1
        return images


@functools.lru_cache(maxsize=20)
def mesh_of(solid: str, image_size: int) -> scan.ConvexMesh:
    """Return the solid, with its corners on the unit sphere.

    :param solid: one of the five.
    :param image_size: height and width in pixels, which determine the number of flat faces of a curved one.
    """
    if solid in ("cone", "cylinder"):
        turns = 2 * math.pi * np.arange(max(96, image_size)) / max(96, image_size)
        radius, ends = (math.sqrt(3) / 2, [-0.5]) if solid == "cone" else (0.6, [-0.8, 0.8])
        circles = [np.stack([radius * np.cos(turns), radius * np.sin(turns), 0 * turns + z], 1) for z in ends]
        tip = [[0, 0, 1.0]] if solid == "cone" else np.empty((0, 3))
        return scan.ConvexMesh.around(np.concatenate([*circles, tip]))
    return scan.ConvexMesh.around(_corners(solid))


def _corners(solid: str) -> Float[np.ndarray, "corner 3"]:
    """Return the corners of a regular solid."""
    signs = np.array([[x, y, z] for x in (1.0, -1.0) for y in (1.0, -1.0) for z in (1.0, -1.0)])
    if solid == "icosahedron":
        pairs = np.array([[0, y, z * _GOLDEN] for y in (1.0, -1.0) for z in (1.0, -1.0)])
        corners = np.concatenate([np.roll(pairs, shift, axis=1) for shift in range(3)])
    else:
        corners = signs if solid == "cube" else signs[signs.prod(axis=1) > 0]
    return corners / np.linalg.norm(corners[0])


@functools.cache
def rotation_group(solid: str) -> Float[np.ndarray, "element 4"]:
    """Return the rotations that map a regular solid to itself, generated by turns about a corner and about a face.

    >>> [len(rotation_group(solid)) for solid in SOLIDS[:3]]
    [12, 24, 60]

    :param solid: tetrahedron, cube or icosahedron.
    """
    n_at_corner, n_of_face = {"tetrahedron": (3, 3), "cube": (3, 4), "icosahedron": (5, 3)}[solid]
    mesh = mesh_of(solid, 64)
    corner, face = mesh.corners[0], mesh.normals[0]
    return rotations.generated(
        rotations.about(corner, 2 * math.pi / n_at_corner), rotations.about(face, 2 * math.pi / n_of_face)
    )


def reduce(solid: str, quaternions: Float[np.ndarray, "rotation 4"]) -> Float[np.ndarray, "rotation 4"]:
    """Return the reduced quaternions of rotations; rotations that look the same have the same one.

    :param solid: one of the five.
    :param quaternions: unit quaternions.
    """
    if solid in ("cone", "cylinder"):
        return rotations.reduced_about_axis(quaternions, has_two_ends=solid == "cylinder")
    return rotations.reduced(quaternions, rotation_group(solid))


@functools.lru_cache(maxsize=20)
def reduced_rotations(solid: str, n_rotations: int, seed: int) -> Float[np.ndarray, "rotation 4"]:
    """Return evenly spread reduced quaternions of one solid.

    :param solid: one of the five.
    :param n_rotations: number of rotations.
    :param seed: seed of the start of their sequence.
    """
    if solid in ("cone", "cylinder"):
        height, turn = _low_discrepancy(2, 0, n_rotations, seed, solid).T
        z = 1 - height if solid == "cylinder" else 1 - 2 * height
        across = np.sqrt(1 - z**2)
        directions = np.stack(
            [across * np.cos(2 * math.pi * turn), across * np.sin(2 * math.pi * turn), z], 1
        )
        quaternions = rotations.tilts(directions)
    else:
        group = rotation_group(solid)
        parts, n_reduced, begin = [], 0, 0
        while n_reduced < n_rotations:
            every = rotations.uniform(_low_discrepancy(3, begin, 2**14, seed, solid))
            # w of q g is q · (w, −x, −y, −z) of g, and the first element of the group is the identity.
            turned = np.abs(every @ (group * [1, -1, -1, -1]).T)
            # A rotation is reduced if the identity has the largest |w| of its class.
            parts.append(every[turned[:, 0] >= turned.max(axis=1)])
            n_reduced, begin = n_reduced + len(parts[-1]), begin + 2**14
        quaternions = np.concatenate(parts)[:n_rotations]
        quaternions = np.where(quaternions[:, :1] < 0, -quaternions, quaternions)
    # The array is cached, so a caller must not change it.
    quaternions.flags.writeable = False
    return quaternions


def _low_discrepancy(
    width: int, begin: int, count: int, seed: int, solid: str
) -> Float[np.ndarray, "point {width}"]:
    """Return the points s + i α mod 1 for i = begin …, with α = (1/g, …, 1/gᵈ) and g > 1 the root of gᵈ⁺¹ = g + 1."""
    ratio = 1.5
    # Fixed-point iteration for the root of g^(d+1) = g + 1.
    for _ in range(64):
        ratio = (1 + ratio) ** (1 / (width + 1))
    start = generator(seed, "solids", solid).uniform(size=width)
    steps = np.arange(begin, begin + count)[:, np.newaxis]
    return (start + steps * ratio ** -np.arange(1.0, width + 1)) % 1
