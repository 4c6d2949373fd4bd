"""The number of latents for each dataset and objective."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from annotated_types import Ge

from polariscope.core.errors import PolariscopeError
from polariscope.sizing.checks import check_recipe, make_goal, split_options
from polariscope.sizing.methods import family
from polariscope.sizing.result import Size
from polariscope.sizing.size import size
from polariscope.storage.search_folder import SearchFolder
from polariscope.studies.analyses import AbstractOnce, Column, Columns, analysis

if TYPE_CHECKING:
    from polariscope.data.dataset import AbstractDataset


@analysis("size", scope="once", gives={"size.*": Column("number of latents")})
@dataclasses.dataclass(frozen=True)
class SizeAnalysis(AbstractOnce):
    """The number of latents by a sizing method; see :func:`polariscope.size`."""

    method: str = "fondue"
    """A member of ``polariscope.sizing``."""
    seed: Annotated[int, Ge(0)] = 0
    """Seed of the first models."""
    seeds: Annotated[int, Ge(1)] = 1
    """Number of seeds; the answer is their median."""
    options: Mapping[str, object] = dataclasses.field(default_factory=dict)
    """Options of the method and bounds of the search: ``threshold``, ``cap``, ``steps`` …"""

    def __post_init__(self) -> None:
        family[self.method]

    def check(self, data: AbstractDataset, settings: Mapping[str, object]) -> None:
        bounds, _, recipe = split_options(self.method, {**settings, **self.options})
        check_recipe(data, self.method, recipe, make_goal(bounds, data, recipe))

    def measure(self, data: AbstractDataset, settings: Mapping[str, object], folder: Path) -> None:
        recipe: dict[str, Any] = {**settings, **self.options}
        size(data, self.method, seed=self.seed, seeds=self.seeds, out=folder, **recipe)

    def is_kept(self, folder: Path) -> bool:
        try:
            # Reading the columns raises an error if the answer is damaged; it is then computed again.
            return SearchFolder(folder).has_answer and self.columns(folder) is not None
        except PolariscopeError:
            return False

    def columns(self, folder: Path) -> Columns:
        answer = Size.from_dict(SearchFolder(folder).read_answer()[0])
        low, high = answer.interval or (None, None)
        return {f"size.{self.method}": answer.value, "size.low": low, "size.high": high}
