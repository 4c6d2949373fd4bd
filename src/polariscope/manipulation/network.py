"""The manipulation m_ψ: a network from an observation's factors, through a single number, to changes of its values."""

from __future__ import annotations

import copy
import dataclasses
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn

from polariscope import __version__
from polariscope.core import files
from polariscope.core.options import from_record, to_record
from polariscope.core.seeds import derive
from polariscope.core.types import Recordable
from polariscope.data.dataset import AbstractDataset
from polariscope.models.nets import AbstractNet, initialise, net
from polariscope.models.nets.mlp import dense_layers

logger = logging.getLogger("polariscope")

N_SCALING_DRAWS, DRAWING_DEVIATION, MAX_KINK = 64, 0.5, 2.0
"""Number of draws of the factors for scaling initial weights, the standard deviation of the output before its tanh
after scaling, and the bound ± of the kinks in the layer that follows the bottleneck."""
ROWS_PER_PART = 4096
"""Number of observations whose factors are read together."""


@dataclasses.dataclass(frozen=True)
class Architecture:
    """Everything required to build a manipulation; its weights are separate."""

    net: AbstractNet
    """Net whose decoder produces the change."""
    shape: tuple[int, ...]
    """Shape of one observation."""
    factor_names: tuple[str, ...]
    low: tuple[float, ...]
    """Smallest value of each factor, which is mapped to −1."""
    high: tuple[float, ...]
    """Largest value of each factor, which is mapped to 1."""
    epsilon: float
    """Largest change of a value."""
    reflects: bool
    """If True, values lie in [0, 1] and are reflected into it."""
    widths: tuple[int, ...] = (256,)
    """Widths of the hidden layers between the factors and the single number."""

    @classmethod
    def of(cls, data: AbstractDataset, drawn_by: AbstractNet, epsilon: float) -> Architecture:
        """Return the architecture for a dataset.

        :param data: the data to manipulate.
        :param drawn_by: the net whose decoder produces the change.
        :param epsilon: largest change of a value.
        """
        parts = [data.factors(rows).astype(np.float64) for rows in rows_of(data)]
        low, high = (reduce([reduce(part, 0) for part in parts], 0) for reduce in (np.min, np.max))
        return cls(
            net=drawn_by,
            shape=tuple(data.shape),
            factor_names=tuple(data.factor_names),
            low=tuple(low.tolist()),
            high=tuple(high.tolist()),
            epsilon=epsilon,
            reflects=data.is_unit_interval,
        )

    def describe(self) -> dict[str, Any]:
        """Return a JSON record; :meth:`from_record` is its inverse."""
        record = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        lists = {name: list(value) for name, value in record.items() if isinstance(value, tuple)}
        return {**record, **lists, "net": to_record(self.net, net)}

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Architecture:
        """Build the architecture from a record of :meth:`describe`.

        :param record: the JSON record.
        """
        tuples = {name: tuple(value) for name, value in record.items() if isinstance(value, list)}
        return cls(**{**record, **tuples, "net": from_record(net, record["net"])})

    def build(self, seed: int) -> ManipulationNet:
        """Build a network with initial weights.

        :param seed: seed of the weights.
        """
        with torch.random.fork_rng(devices=[]):  # layers draw from the global generator when constructed
            made = ManipulationNet(self)
        random = torch.Generator().manual_seed(derive(seed, "weights"))
        initialise(made, "kaiming", random)
        made.scale_up(random)
        return made


class ManipulationNet(nn.Module):
    r"""The network m_ψ from factors w to a change in [−1, 1] of each value.

    .. math:: b(w) = A_2\, \mathrm{ReLU}(A_1 \tilde w), \qquad m(w) = \tanh(\mathrm{dec}(b(w)))

    with the factors w̃ scaled to [−1, 1], a single number b for each observation, and the decoder of a model with one
    latent. The change depends on the factors only through b: images with equal b get equal m.

    Reference: zietlow2022 §4.3.1, the decoder of ``conv`` with an additional input layer of a single neuron. The source
    does not specify the position of that layer, the layer of 256 before it, its lack of an activation, the tanh, or the
    initial weights.

    :param architecture: sizes and ranges.
    """

    low: Tensor
    span: Tensor

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.architecture = architecture
        low, high = (torch.tensor(ends) for ends in (architecture.low, architecture.high))
        # Not saved with the weights, because the architecture contains it.
        self.register_buffer("low", low, persistent=False)
        # A factor that never varies is mapped to −1.
        self.register_buffer("span", torch.where(high > low, high - low, 1.0), persistent=False)
        n_factors, widths = len(architecture.factor_names), architecture.widths
        layers = dense_layers(n_factors, widths, "relu")
        self.squeeze = nn.Sequential(*layers, nn.Linear(widths[-1] if widths else n_factors, 1))
        self.draw = architecture.net.decoder(1, architecture.shape, 1)

    def bottleneck(self, factors: Float[Tensor, "sample factor"]) -> Float[Tensor, "sample 1"]:
        """Return the single number b(w) of each observation.

        :param factors: factor values.
        """
        return self.squeeze(2 * (factors - self.low) / self.span - 1)

    def render(self, number: Float[Tensor, "sample 1"]) -> Float[Tensor, "sample *shape"]:
        """Return the change for each number.

        :param number: b of each observation.
        """
        return torch.tanh(self.draw(number))

    def forward(self, factors: Float[Tensor, "sample factor"]) -> Float[Tensor, "sample *shape"]:
        return self.render(self.bottleneck(factors))

    @torch.no_grad()
    def scale_up(self, random: torch.Generator) -> None:
        """Scale initial weights: over uniform factors, b has mean 0 and deviation 1, and the output ½ before the tanh.

        The kinks of the layer after the bottleneck are spread over the range of b.

        Without this scaling the output starts at about 1e-4, and the rectifiers die before they have learned anything:
        an attack on sprites with Glorot's weights produced the same constant for all images after 200 steps.

        :param random: random generator of the factors.
        """
        last = self.squeeze[-1]
        assert isinstance(last, nn.Linear)
        uniform = torch.rand(N_SCALING_DRAWS, len(self.low), generator=random)
        number = self.bottleneck(self.low + self.span * uniform)
        last.bias.copy_((last.bias - number.mean()) / number.std())
        last.weight /= number.std()
        reads = next(layer for layer in self.draw.modules() if isinstance(layer, nn.Linear))
        kinks = 2 * MAX_KINK * torch.rand(len(reads.bias), generator=random) - MAX_KINK
        # The unit changes its sign at b = kink: w b + bias = w (b − kink).
        reads.bias.copy_(-reads.weight[:, 0] * kinks)
        drawn = self.draw(self.bottleneck(self.low + self.span * uniform))
        final = [layer for layer in self.draw.modules() if isinstance(layer, nn.Linear | nn.ConvTranspose2d)][
            -1
        ]
        centre = drawn.mean()
        final.weight *= DRAWING_DEVIATION / drawn.std()
        if final.bias is not None:
            final.bias.copy_((final.bias - centre) * DRAWING_DEVIATION / drawn.std())

    @property
    def digest(self) -> str:
        """Hash of the architecture and the weights."""
        return files.digest([self.architecture.describe(), files.digest_tensors(self.state_dict())])

    def save(
        self, path: str | Path, step: int | None = None, guard: files.Guard | None = None, **about: Recordable
    ) -> None:
        """Write the network to a safetensors file.

        :param path: path of the file.
        :param step: (default None) number of training steps.
        :param guard: (default None) called just before the file is renamed to its final name.
        :param about: further entries of the file's header, as JSON values.
        """
        write(Path(path), self.architecture, self.state_dict(), step, guard, about)


def write(
    path: Path,
    architecture: Architecture,
    tensors: dict[str, Tensor],
    step: int | None,
    guard: files.Guard | None,
    about: Mapping[str, Recordable],
) -> None:
    """Write the file of a manipulation.

    :param path: path of the file.
    :param architecture: sizes and ranges, for its header.
    :param tensors: weights by name, and the table.
    :param step: number of training steps.
    :param guard: called just before the file is renamed to its final name.
    :param about: further entries of the file's header.
    """
    header = {"blueprint": architecture.describe(), "step": step, "polariscope": __version__, **about}
    files.write_tensors(path, tensors, header, guard)


def rows_of(data: AbstractDataset) -> Sequence[Int[np.ndarray, " sample"]]:
    """Return all indices of a dataset, in parts.

    :param data: the dataset.
    """
    return np.array_split(np.arange(len(data)), -(-len(data) // ROWS_PER_PART))


TABULATED = ("table", "ends")
"""Tensors that a file contains besides the weights of the network."""
MIN_KNOTS, MAX_KNOTS = 65, 1025
"""Initial and maximum number of knots of a table."""
MAX_TABLE_ERROR = 0.005
"""Maximum distance between a table and the network, in units of ε: an eighth of a byte at ε = 0.1."""


class Tabulated:
    """A finished manipulation as a tabulated function of its single number.

    Between the knots it is linear. A table is fast, and an observation is the same in every batch and on every machine,
    which convolutions do not guarantee.

    :param architecture: sizes and ranges.
    :param tensors: weights of the network by name, the ``table`` and the ``ends`` of the range of b.
    """

    def __init__(self, architecture: Architecture, tensors: dict[str, Tensor]) -> None:
        self.architecture = architecture
        self.tensors = tensors
        self.table = tensors["table"].numpy()
        self.low, self.high = tensors["ends"].double().tolist()
        weights = [name for name in tensors if name.startswith("squeeze.") and name.endswith(".weight")]
        # By number, because squeeze.10 would sort before squeeze.2 as text.
        ordered = sorted(weights, key=lambda name: int(name.split(".")[1]))
        self.layers = [
            (tensors[name].double().numpy(), tensors[name.replace(".weight", ".bias")].double().numpy())
            for name in ordered
        ]

    @classmethod
    def of(cls, manipulation: ManipulationNet, data: AbstractDataset) -> Tabulated:
        """Tabulate a network to within 0.005 ε, with at most 1,025 knots.

        :param manipulation: the network.
        :param data: data whose factors determine the range of b.
        """
        # On the CPU in double precision, so the table does not depend on the device of the training.
        exact = copy.deepcopy(manipulation).cpu().double()
        # Only the bottleneck is needed here, so the table is a placeholder.
        empty = {"table": torch.zeros(2, 1), "ends": torch.tensor([0.0, 1.0])}
        weights = {name: tensor.detach().cpu().clone() for name, tensor in manipulation.state_dict().items()}
        front = cls(manipulation.architecture, {**weights, **empty})
        numbers = [front.bottleneck(data.factors(rows)) for rows in rows_of(data)]
        low, high = min(map(np.min, numbers)), max(map(np.max, numbers))
        # A range of length 0 would lead to a division by 0.
        high = high if high > low else low + 1.0
        drawn = _drawn(exact, np.linspace(low, high, MIN_KNOTS))
        while True:
            n_knots = len(drawn)
            # Linear interpolation is worst about halfway between knots.
            midpoints = np.linspace(low, high, 2 * n_knots - 1)[1::2]
            between = _drawn(exact, midpoints)
            error = float(np.abs((drawn[:-1] + drawn[1:]) / 2 - between).max())
            if error <= MAX_TABLE_ERROR or n_knots >= MAX_KNOTS:
                break
            drawn = np.insert(drawn, np.arange(1, n_knots), between, axis=0)  # midpoints become knots
        if error > MAX_TABLE_ERROR:
            logger.warning(
                "The manipulation changes so fast with its single number that a table of %d knots differs by up to "
                "%.3g ε from the network; the table determines the data.",
                n_knots,
                error,
            )
        if float(np.ptp(drawn, axis=0).max()) < MAX_TABLE_ERROR:
            logger.warning(
                "The manipulation is the same for all observations: the attack had no effect, or its network "
                "died. Try another seed or a lower learning rate."
            )
        table = torch.from_numpy(drawn.astype(np.float32))
        ends = torch.tensor([low, high], dtype=torch.float64)
        return cls(manipulation.architecture, {**weights, "table": table, "ends": ends})

    @classmethod
    def read(cls, file: Path) -> Tabulated:
        """Read the file that :meth:`save` wrote; loading never runs code from the file.

        :param file: path of the file.
        """
        tensors, header = files.read_tensors(file)
        return cls(Architecture.from_record(header["blueprint"]), tensors)

    @property
    def digest(self) -> str:
        """Hash of the architecture, the weights and the table."""
        return files.digest([self.architecture.describe(), files.digest_tensors(self.tensors)])

    def save(
        self, path: str | Path, step: int | None = None, guard: files.Guard | None = None, **about: Recordable
    ) -> None:
        """Write the table and the network to a safetensors file.

        :param path: path of the file.
        :param step: (default None) number of training steps.
        :param guard: (default None) called just before the file is renamed to its final name.
        :param about: further entries of the file's header, as JSON values.
        """
        write(Path(path), self.architecture, self.tensors, step, guard, about)

    def network(self) -> ManipulationNet:
        """Return the network that was tabulated."""
        made = self.architecture.build(seed=0)
        made.load_state_dict({n: t for n, t in self.tensors.items() if n not in TABULATED})
        return made.eval()

    def bottleneck(self, factors: Shaped[np.ndarray, "sample factor"]) -> Float[np.ndarray, " sample"]:
        """Return the single number of each observation; sums have a fixed order, so it does not depend on the batch.

        :param factors: factor values.
        """
        low, high = np.array(self.architecture.low), np.array(self.architecture.high)
        features = 2 * (factors - low) / np.where(high > low, high - low, 1.0) - 1
        for number, (weight, bias) in enumerate(self.layers):
            features = np.maximum(features, 0) if number else features
            # Not a matrix product, whose order of summation depends on the size of the batch.
            features = (features[:, None, :] * weight).sum(axis=-1) + bias
        return features[:, 0]

    def __call__(self, factors: Shaped[np.ndarray, "sample factor"]) -> Float[np.ndarray, "sample *shape"]:
        """Return the manipulation m of observations, in [−1, 1]; a number beyond the table's range is clipped to it.

        :param factors: factor values.
        """
        position = (self.bottleneck(factors) - self.low) / (self.high - self.low) * (len(self.table) - 1)
        position = np.clip(position, 0, len(self.table) - 1)
        # The last knot has no neighbour above it.
        knot = np.minimum(position.astype(np.int64), len(self.table) - 2)
        share = (position - knot).astype(np.float32).reshape(-1, *(1,) * len(self.architecture.shape))
        below = self.table[knot]
        return below + share * (self.table[knot + 1] - below)


@torch.no_grad()
def _drawn(
    manipulation: ManipulationNet, numbers: Float[np.ndarray, " knot"]
) -> Float[np.ndarray, "knot *shape"]:
    """Return the output of the network for these numbers."""
    parts = torch.from_numpy(numbers)[:, None].split(64)
    return torch.cat([manipulation.render(part) for part in parts]).numpy()
