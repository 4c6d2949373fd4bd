"""A normal prior with a variance for each latent, shared by the fixed and the learned version."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Annotated, ClassVar

import torch
from annotated_types import Gt
from jaxtyping import Float
from torch import Tensor, nn

from polariscope.core.errors import Argument, InputError
from polariscope.core.option_values import Advice
from polariscope.models.priors import AbstractNormalPriorModule, AbstractPrior

if TYPE_CHECKING:
    from polariscope.data.dataset import AbstractDataset

MAX_SAMPLES = 10_000
MAX_VALUES = 2**25  # 256 MiB of float64, for observations of any size
SMALLEST_SHARE = 1e-3
OVERSAMPLING, ITERATIONS = 10, 6


class AnisotropicPriorModule(AbstractNormalPriorModule):
    """p(z) = N(0, diag s²) with variances T · softmax(logits), so their sum is always T."""

    logits: Tensor
    log_total: Tensor

    def __init__(self, log_variances: Float[Tensor, " latent"], total: float, learned: bool) -> None:
        super().__init__()
        self.n_latents = len(log_variances)
        # In double precision, so small shares keep their digits.
        logits = torch.log_softmax(log_variances.double(), dim=0).to(torch.get_default_dtype())
        if learned:
            self.logits = nn.Parameter(logits)
        else:
            self.register_buffer("logits", logits)
        self.register_buffer("log_total", torch.tensor(math.log(total)), persistent=False)

    @property
    def log_variance(self) -> Float[Tensor, " latent"]:  # type: ignore[override]
        return self.log_total + torch.log_softmax(self.logits, dim=0)

    @property
    def meaning_of_passive(self) -> str:  # type: ignore[override]
        variance = self.passive_shape()[1].detach()
        return (
            "its posterior is close to its own prior N(0, s²) for every input, with a variance s² that differs between "
            f"latents, from {float(variance.min()):.3g} to {float(variance.max()):.3g}"
        )


@dataclasses.dataclass(frozen=True)
class AbstractAnisotropicPrior(AbstractPrior):
    """Options of the anisotropic priors and the initialisation of their variances."""

    scale: Annotated[float, Gt(0), Advice("1 has the total of N(0, I)")] = 1.0
    """Root mean square s of the latents' standard deviations: the variances sum to those of N(0, s² I)."""
    variances: tuple[Annotated[float, Gt(0)], ...] | None = None
    """Variances, one per latent, instead of those of the data; None to compute them from the data."""

    learned: ClassVar[bool]

    def __post_init__(self) -> None:
        if self.variances is None:
            return
        if not self.variances:
            raise InputError("variances", "be positive numbers, one per latent", got=self.variances)
        if self.scale != 1:
            raise InputError(
                "scale", "be 1 if variances are passed", got=self.scale, remedy="scale the variances"
            )

    def check(self, n_latents: int) -> None:
        if self.variances is not None and len(self.variances) != n_latents:
            raise InputError(
                "variances",
                "be one per latent",
                got=f"{len(self.variances)} for {n_latents} latents",
                remedy=(
                    "set ",
                    Argument("n_latents", len(self.variances)),
                    f" or pass {n_latents} variances",
                ),
            )

    def build(
        self,
        n_latents: int,
        data: AbstractDataset | None,
        n_auxiliary: int,
        generator: torch.Generator,
    ) -> AnisotropicPriorModule:
        self.check(n_latents)
        if self.variances is not None:
            log_variances = torch.tensor(self.variances, dtype=torch.float64).log()
            return AnisotropicPriorModule(log_variances, math.fsum(self.variances), self.learned)
        # Without data, weights will be loaded over these equal variances.
        start = torch.ones(n_latents) if data is None else principal_shares(data, n_latents, generator)
        return AnisotropicPriorModule(start.log(), n_latents * self.scale**2, self.learned)


def principal_shares(
    data: AbstractDataset, n_latents: int, generator: torch.Generator
) -> Float[Tensor, " latent"]:
    """Return the squared singular values of the centred data divided by the largest, descending, at least 10⁻³.

    They are computed in float64 from at most 10,000 observations drawn with ``generator`` (fewer if they are large), by
    a randomised range finder with six power iterations. It is exact if an observation has at most ten values more than
    there are latents.
    """
    n_samples = min(len(data), MAX_SAMPLES, max(MAX_VALUES // data.n_features, n_latents + OVERSAMPLING))
    indices = torch.randperm(len(data), generator=generator)[:n_samples].sort().values.numpy()
    x = torch.from_numpy(data.values(indices)).flatten(1).double()
    rounding = (
        1e-12 * x.abs().max()
    )  # above the rounding error of a constant, below the resolution of float32
    x -= x.mean(0)
    # A few more directions than latents make the leading ones accurate.
    width = min(n_latents + OVERSAMPLING, *x.shape)
    basis = torch.randn((x.shape[1], width), generator=generator, dtype=torch.float64)
    for _ in range(ITERATIONS):
        # Without the QR decomposition, all columns would converge to the first direction.
        basis = torch.linalg.qr(x.T @ (x @ basis)).Q
    squares = torch.linalg.svdvals(x @ basis)[:n_latents] ** 2
    if not squares[0] > rounding**2 * x.numel():
        raise InputError(
            problem=(
                f"{data.name} never varies in {n_samples} observations, so it has no principal variances"
            ),
            remedy="check the data, or pass variances",
        )
    # Latents beyond the rank of the data have the share 0, which the next line lifts to the minimum.
    squares = torch.nn.functional.pad(squares, (0, n_latents - len(squares)))
    return (squares / squares[0]).clamp(min=SMALLEST_SHARE)
