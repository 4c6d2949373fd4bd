"""Records of options that several commands share."""

from __future__ import annotations

import dataclasses
from typing import Annotated

from annotated_types import Ge

from polariscope.cli.command import Flag
from polariscope.core.options import checked

AUTO = "auto"


@checked
@dataclasses.dataclass(frozen=True)
class ModelParts:
    """The parts of a model, by name."""

    objective: str = "vae"
    """Loss function; see 'polariscope list objectives'."""
    net: str = AUTO
    """Encoder and decoder; auto selects conv for images, otherwise mlp."""
    posterior: str = AUTO
    """q(z|x); auto selects the default of the objective, usually diagonal."""
    prior: str = AUTO
    """p(z); auto selects the default of the objective, usually isotropic."""
    likelihood: str = AUTO
    """p(x|z); auto selects bernoulli for images and for values 0 and 1, poisson or negative-binomial for counts,
    otherwise gaussian."""
    initialisation: str = "glorot"
    """Initialisation of the weights."""

    def concepts(self) -> dict[str, str]:
        """Return the names of the parts that are members of families."""
        return {name: value for name, value in dataclasses.asdict(self).items() if name != "initialisation"}


@checked
@dataclasses.dataclass(frozen=True)
class Compute:
    """Device and number of threads."""

    device: str = AUTO
    """Device: auto, cpu, cuda or mps."""
    threads: (
        Annotated[
            int,
            Ge(1),
            Flag(
                default="chosen from the work per step and the number of cores; a resumed run keeps its number"
            ),
        ]
        | None
    ) = None
    """Number of CPU threads."""
