"""Signatures for type checkers; written by ``make docs`` (docs/signatures.py)."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from polariscope.analysis.dimension import Dimension
from polariscope.analysis.metrics import Score
from polariscope.core.registry import Family
from polariscope.core.types import ArrayInput, OptionValue
from polariscope.data.data_like import DataLike
from polariscope.models.protocol import DeviceLike
from polariscope.sizing.compare import SizeComparison
from polariscope.sizing.curve_result import SizeCurve
from polariscope.sizing.result import Size
from polariscope.studies.size_table import SizeTable

from polariscope.studies.analyses.agreement import AgreementAnalysis
from polariscope.studies.analyses.compare import CompareAnalysis
from polariscope.studies.analyses.coordinates import CoordinatesAnalysis
from polariscope.studies.analyses.decoder_use import DecoderUseAnalysis
from polariscope.studies.analyses.decompose import DecomposeAnalysis
from polariscope.studies.analyses.diagnose import DiagnoseAnalysis
from polariscope.studies.analyses.dimension import DimensionAnalysis
from polariscope.studies.analyses.encode import EncodeAnalysis
from polariscope.studies.analyses.geometry import GeometryAnalysis
from polariscope.studies.analyses.prior_fit import PriorFitAnalysis
from polariscope.studies.analyses.probes import ProbesAnalysis
from polariscope.studies.analyses.score import ScoreAnalysis
from polariscope.studies.analyses.size import SizeAnalysis
from polariscope.studies.analyses.sparsity import SparsityAnalysis
from polariscope.studies.analyses.udr import UdrAnalysis
from polariscope.data.own.anndata import AnndataDataset
from polariscope.data.own.arrays import ArraysDataset
from polariscope.data.rendered.cars import CarsDataset
from polariscope.data.published.cars3d import Cars3DDataset
from polariscope.data.published.celeba import CelebADataset
from polariscope.data.published.digits import DigitsDataset
from polariscope.data.published.dsprites import DSpritesDataset
from polariscope.data.published.fashion_mnist import FashionMNISTDataset
from polariscope.data.rendered.gaussian import GaussianDataset
from polariscope.data.own.images import FolderDataset
from polariscope.data.published.mnist import MNISTDataset
from polariscope.data.published.mpi3d import MPI3DDataset
from polariscope.data.rendered.norb import NorbDataset
from polariscope.data.rendered.pinwheel import PinwheelDataset
from polariscope.data.rendered.shapes3d import Shapes3DDataset
from polariscope.data.published.shapes3d_original import Shapes3DOriginalDataset
from polariscope.data.published.smallnorb import SmallNORBDataset
from polariscope.data.rendered.solids import SolidsDataset
from polariscope.data.rendered.sprites import SpritesDataset
from polariscope.data.rendered.square_linear import SquareLinearDataset
from polariscope.data.rendered.square_nonlinear import SquareNonlinearDataset
from polariscope.data.published.symsol import SymSolDataset
from polariscope.data.own.table import TableDataset
from polariscope.studies.figures.distance_by_score import DistanceByScore
from polariscope.studies.figures.distance_line_search import DistanceLineSearch
from polariscope.studies.figures.information_by_passive import InformationByPassive
from polariscope.studies.figures.latent_scatter import LatentScatter
from polariscope.studies.figures.layer_heat_map import LayerHeatMap
from polariscope.studies.figures.losses import LossesFigure
from polariscope.studies.figures.metric_by_factor import MetricByFactor
from polariscope.studies.figures.metric_by_reconstruction import MetricByReconstruction
from polariscope.studies.figures.probes_by_strength import ProbesByStrength
from polariscope.studies.figures.rank_correlations import RankCorrelations
from polariscope.studies.figures.rate_by_strength import RateByStrength
from polariscope.studies.figures.rate_distortion import RateDistortion
from polariscope.studies.figures.restarts import RestartsFigure
from polariscope.studies.figures.strips import StripsFigure
from polariscope.studies.figures.truncation import TruncationFigure
from polariscope.studies.figures.types_by_strength import TypesByStrength
from polariscope.models.likelihoods.bernoulli import BernoulliLikelihood
from polariscope.models.likelihoods.gaussian import GaussianLikelihood
from polariscope.models.likelihoods.negative_binomial import NegativeBinomialLikelihood
from polariscope.models.likelihoods.poisson import PoissonLikelihood
from polariscope.models.nets.conv import ConvNet
from polariscope.models.nets.fc import FcNet
from polariscope.models.nets.linear import LinearNet
from polariscope.models.nets.mlp import MlpNet
from polariscope.objectives.aae import AaeObjective
from polariscope.objectives.ae import AeObjective
from polariscope.objectives.annealed import AnnealedObjective
from polariscope.objectives.beta import BetaObjective
from polariscope.objectives.beta_full import BetaFullObjective
from polariscope.objectives.beta_tc import BetaTcObjective
from polariscope.objectives.classifier import ClassifierObjective
from polariscope.objectives.decomposition import DecompositionObjective
from polariscope.objectives.dip_i import DipIObjective
from polariscope.objectives.dip_ii import DipIIObjective
from polariscope.objectives.entropy import EntropyObjective
from polariscope.objectives.factor import FactorObjective
from polariscope.objectives.info import InfoObjective
from polariscope.objectives.ivae import IvaeObjective
from polariscope.objectives.pcl import PclObjective
from polariscope.objectives.slow import SlowObjective
from polariscope.objectives.vae import VaeObjective
from polariscope.objectives.wae import WaeObjective
from polariscope.objectives.weak_gan import WeakGanObjective
from polariscope.models.posteriors.deterministic import DeterministicPosterior
from polariscope.models.posteriors.diagonal import DiagonalPosterior
from polariscope.models.posteriors.full import FullPosterior
from polariscope.models.priors.anisotropic import AnisotropicPrior
from polariscope.models.priors.anisotropic_learned import AnisotropicLearnedPrior
from polariscope.models.priors.conditional import ConditionalPrior
from polariscope.models.priors.isotropic import IsotropicPrior
from polariscope.models.priors.mixture import MixturePrior
from polariscope.models.priors.sparse import SparsePrior
from polariscope.models.priors.student_t import StudentPrior
from polariscope.data.variants.background import BackgroundVariant
from polariscope.data.variants.centred import CentredVariant
from polariscope.data.variants.colour import ColourVariant
from polariscope.data.variants.correlated import CorrelatedVariant
from polariscope.data.variants.cropped import CroppedVariant
from polariscope.data.variants.flips import FlipsVariant
from polariscope.data.variants.grey import GreyVariant
from polariscope.data.variants.inverted import InvertedVariant
from polariscope.manipulation.variants.manipulated import ManipulatedVariant
from polariscope.data.variants.noisy import NoisyVariant
from polariscope.data.variants.padded import PaddedVariant
from polariscope.data.variants.pixel_noise import PixelNoiseVariant
from polariscope.data.variants.resized import ResizedVariant
from polariscope.data.variants.scaled import ScaledVariant
from polariscope.data.variants.standardised import StandardisedVariant
from polariscope.data.variants.subset import SubsetVariant
from polariscope.data.variants.unique import UniqueVariant
from polariscope.studies.workers.local import LocalWorkers
from polariscope.studies.workers.ray import RayWorkers
from polariscope.studies.workers.slurm import SlurmWorkers

def size(data: DataLike, method: str = ..., *, trainer: Callable[..., object] | None = ..., target: str = ..., n_latents: int | None = ..., seed: int = ..., seeds: int = ..., out: str | Path | None = ..., device: DeviceLike = ..., threads: int | None = ..., progress: bool | Callable[..., object] = ..., variants: str | Mapping[str, object] | Sequence[str | Mapping[str, object]] = ..., standardise: bool = ..., scale: bool = ..., keep_units: bool = ..., missing: Literal['refuse', 'drop', 'median'] = ..., threshold: float = ..., n_init: int | None = ..., cap: int = ..., steps: int | None = ..., minutes: float | None = ..., epochs: int | None = ..., learning_rate: float | None = ..., **options: OptionValue) -> Size: ...
def compare_sizes(data: DataLike, methods: Sequence[str] | None = ..., *, seed: int = ..., seeds: int = ..., out: str | Path | None = ..., device: DeviceLike = ..., threads: int | None = ..., progress: bool | Callable[..., object] = ..., variants: str | Mapping[str, object] | Sequence[str | Mapping[str, object]] = ..., standardise: bool = ..., scale: bool = ..., keep_units: bool = ..., missing: Literal['refuse', 'drop', 'median'] = ..., threshold: float = ..., n_init: int | None = ..., cap: int = ..., steps: int | None = ..., minutes: float | None = ..., epochs: int | None = ..., learning_rate: float | None = ..., **options: OptionValue) -> SizeComparison: ...
def size_curve(data: DataLike, n_latents: Sequence[int], *, methods: Sequence[str] = ..., seeds: int = ..., part: Literal['all', 'train', 'validation', 'test'] = ..., announce: Callable[..., object] | None = ..., seed: int = ..., out: str | Path | None = ..., device: DeviceLike = ..., threads: int | None = ..., progress: bool | Callable[..., object] = ..., variants: str | Mapping[str, object] | Sequence[str | Mapping[str, object]] = ..., standardise: bool = ..., scale: bool = ..., keep_units: bool = ..., missing: Literal['refuse', 'drop', 'median'] = ..., threshold: float = ..., n_init: int | None = ..., cap: int = ..., steps: int | None = ..., minutes: float | None = ..., epochs: int | None = ..., learning_rate: float | None = ..., **options: OptionValue) -> SizeCurve: ...
def size_table(data: DataLike | Mapping[str, DataLike], methods: Sequence[str] | None = ..., *, starts: Sequence[int | str] = ..., strengths: Mapping[str, Sequence[OptionValue]] | None = ..., seeds: int = ..., announce: Callable[..., object] | None = ..., seed: int = ..., out: str | Path | None = ..., device: DeviceLike = ..., threads: int | None = ..., progress: bool | Callable[..., object] = ..., variants: str | Mapping[str, object] | Sequence[str | Mapping[str, object]] = ..., standardise: bool = ..., scale: bool = ..., keep_units: bool = ..., missing: Literal['refuse', 'drop', 'median'] = ..., threshold: float = ..., n_init: int | None = ..., cap: int = ..., steps: int | None = ..., minutes: float | None = ..., epochs: int | None = ..., learning_rate: float | None = ..., **options: OptionValue) -> SizeTable: ...

class _Analyses(Family):
    agreement: type[AgreementAnalysis]
    compare: type[CompareAnalysis]
    coordinates: type[CoordinatesAnalysis]
    decoder_use: type[DecoderUseAnalysis]
    decompose: type[DecomposeAnalysis]
    diagnose: type[DiagnoseAnalysis]
    dimension: type[DimensionAnalysis]
    encode: type[EncodeAnalysis]
    geometry: type[GeometryAnalysis]
    prior_fit: type[PriorFitAnalysis]
    probes: type[ProbesAnalysis]
    score: type[ScoreAnalysis]
    size: type[SizeAnalysis]
    sparsity: type[SparsityAnalysis]
    udr: type[UdrAnalysis]

analyses: _Analyses

class _Datasets(Family):
    anndata: type[AnndataDataset]
    arrays: type[ArraysDataset]
    cars: type[CarsDataset]
    cars3d: type[Cars3DDataset]
    celeba: type[CelebADataset]
    digits: type[DigitsDataset]
    dsprites: type[DSpritesDataset]
    fashion_mnist: type[FashionMNISTDataset]
    gaussian: type[GaussianDataset]
    images: type[FolderDataset]
    mnist: type[MNISTDataset]
    mpi3d: type[MPI3DDataset]
    norb: type[NorbDataset]
    pinwheel: type[PinwheelDataset]
    shapes3d: type[Shapes3DDataset]
    shapes3d_original: type[Shapes3DOriginalDataset]
    smallnorb: type[SmallNORBDataset]
    solids: type[SolidsDataset]
    sprites: type[SpritesDataset]
    square_linear: type[SquareLinearDataset]
    square_nonlinear: type[SquareNonlinearDataset]
    symsol: type[SymSolDataset]
    table: type[TableDataset]

datasets: _Datasets

class _Dimension(Family):
    @staticmethod
    def gride(x: Any, *, k: int = ..., scale: int | None = ..., level: float = ..., n_bootstrap: int = ..., seed: int = ...) -> Dimension: ...
    @staticmethod
    def lpca(x: Any, *, k: int = ..., criterion: Literal['fo', 'participation', 'kaiser', 'broken-stick', 'variance'] = ..., threshold: float | None = ..., level: float = ..., n_bootstrap: int = ..., seed: int = ...) -> Dimension: ...
    @staticmethod
    def mle(x: Any, *, k: int | Literal['auto'] = ..., normaliser: Literal['k-1', 'k-2'] = ..., average: Literal['arithmetic', 'harmonic'] = ..., anchor: float = ..., n_runs: int = ..., level: float = ..., n_bootstrap: int = ..., seed: int = ...) -> Dimension: ...
    @staticmethod
    def twonn(x: Any, *, fit: Literal['line', 'line-from-zero', 'likelihood'] = ..., share: float = ..., level: float = ..., n_bootstrap: int = ..., seed: int = ...) -> Dimension: ...

dimension: _Dimension

class _Figures(Family):
    distance_by_score: type[DistanceByScore]
    distance_line_search: type[DistanceLineSearch]
    information_by_passive: type[InformationByPassive]
    latent_scatter: type[LatentScatter]
    layer_heat_map: type[LayerHeatMap]
    losses: type[LossesFigure]
    metric_by_factor: type[MetricByFactor]
    metric_by_reconstruction: type[MetricByReconstruction]
    probes_by_strength: type[ProbesByStrength]
    rank_correlations: type[RankCorrelations]
    rate_by_strength: type[RateByStrength]
    rate_distortion: type[RateDistortion]
    restarts: type[RestartsFigure]
    strips: type[StripsFigure]
    truncation: type[TruncationFigure]
    types_by_strength: type[TypesByStrength]

figures: _Figures

class _Likelihoods(Family):
    bernoulli: type[BernoulliLikelihood]
    gaussian: type[GaussianLikelihood]
    negative_binomial: type[NegativeBinomialLikelihood]
    poisson: type[PoissonLikelihood]

likelihoods: _Likelihoods

class _Metrics(Family):
    @staticmethod
    def active_units(codes: ArrayInput, *, variant: Literal['active-units', 'std-of-mean', 'std-pruning', 'mean-variance', 'kl-tail', 'kl-threshold', 'kl-udr', 'mixture'] = ..., threshold: float | None = ..., variance: ArrayInput | None = ..., seed: int = ...) -> Score: ...
    @staticmethod
    def beta_vae(codes: ArrayInput, factors: ArrayInput, *, variant: Literal['standardised', 'raw'] = ..., batch_size: int = ..., n_train: int = ..., n_test: int = ..., factor_names: Sequence[str] = ..., factor_kinds: Sequence[str] | None = ..., seed: int = ...) -> Score: ...
    @staticmethod
    def dci(codes: ArrayInput, factors: ArrayInput, *, variant: Literal['boosted', 'reference', 'forest', 'lasso'] = ..., n_trees: int = ..., part: Literal['disentanglement', 'completeness', 'informativeness'] = ..., factor_names: Sequence[str] = ..., factor_kinds: Sequence[str] | None = ..., seed: int = ...) -> Score: ...
    @staticmethod
    def ds(codes: ArrayInput, factors: ArrayInput, *, variant: Literal['corrected', 'printed'] = ..., kinds: Literal['circle', 'numbers', 'classes'] = ..., factor_names: Sequence[str] = ..., factor_kinds: Sequence[str] | None = ..., seed: int = ...) -> Score: ...
    @staticmethod
    def explicitness(codes: ArrayInput, factors: ArrayInput, *, variant: Literal['auc', 'normalised'] = ..., factor_names: Sequence[str] = ..., factor_kinds: Sequence[str] | None = ..., seed: int = ...) -> Score: ...
    @staticmethod
    def factor_vae(codes: ArrayInput, factors: ArrayInput, *, variant: Literal['held-out', 'in-sample'] = ..., batch_size: int = ..., n_train: int = ..., n_test: int = ..., threshold: float = ..., factor_names: Sequence[str] = ..., factor_kinds: Sequence[str] | None = ..., seed: int = ...) -> Score: ...
    @staticmethod
    def hoyer(codes: ArrayInput, *, variant: Literal['normalised', 'raw'] = ..., seed: int = ...) -> Score: ...
    @staticmethod
    def irs(codes: ArrayInput, factors: ArrayInput, *, variant: Literal['locatello', 'matched'] = ..., quantile: float = ..., factor_names: Sequence[str] = ..., factor_kinds: Sequence[str] | None = ..., seed: int = ...) -> Score: ...
    @staticmethod
    def mcc(codes: ArrayInput, factors: ArrayInput, *, variant: Literal['pearson', 'spearman'] = ..., factor_names: Sequence[str] = ..., factor_kinds: Sequence[str] | None = ..., seed: int = ...) -> Score: ...
    @staticmethod
    def mi(codes: ArrayInput, *, variant: Literal['corrected', 'averaged'] = ..., n_bins: int = ..., seed: int = ...) -> Score: ...
    @staticmethod
    def mig(codes: ArrayInput, factors: ArrayInput, *, variant: Literal['locatello', 'rebinned', 'chen'] = ..., n_bins: int = ..., n_samples: int = ..., variance: ArrayInput | None = ..., factor_names: Sequence[str] = ..., factor_kinds: Sequence[str] | None = ..., seed: int = ...) -> Score: ...
    @staticmethod
    def modularity(codes: ArrayInput, factors: ArrayInput, *, variant: Literal['locatello', 'informative'] = ..., n_bins: int = ..., factor_names: Sequence[str] = ..., factor_kinds: Sequence[str] | None = ..., seed: int = ...) -> Score: ...
    @staticmethod
    def probe(codes: ArrayInput, factors: ArrayInput, *, variant: Literal['logistic', 'boosted'] = ..., kinds: Literal['own', 'classes'] = ..., sizes: tuple[int, ...] = ..., n_selection: int = ..., types: Sequence[str] | None = ..., variance: ArrayInput | None = ..., factor_names: Sequence[str] = ..., factor_kinds: Sequence[str] | None = ..., seed: int = ...) -> Score: ...
    @staticmethod
    def sap(codes: ArrayInput, factors: ArrayInput, *, variant: Literal['svm', 'r2'] = ..., strength: float = ..., factor_names: Sequence[str] = ..., factor_kinds: Sequence[str] | None = ..., seed: int = ...) -> Score: ...
    @staticmethod
    def tc(codes: ArrayInput, *, variant: Literal['gaussian', 'noise-free'] = ..., variance: ArrayInput | None = ..., seed: int = ...) -> Score: ...
    @staticmethod
    def udr(models: Sequence[ArrayInput], *, variant: Literal['spearman', 'lasso'] = ..., pooling: Literal['both-ways', 'pooled'] = ..., alpha: float = ..., variance: Sequence[ArrayInput] | None = ..., seed: int = ...) -> Score: ...

metrics: _Metrics

class _Nets(Family):
    conv: type[ConvNet]
    fc: type[FcNet]
    linear: type[LinearNet]
    mlp: type[MlpNet]

nets: _Nets

class _Objectives(Family):
    aae: type[AaeObjective]
    ae: type[AeObjective]
    annealed: type[AnnealedObjective]
    beta: type[BetaObjective]
    beta_full: type[BetaFullObjective]
    beta_tc: type[BetaTcObjective]
    classifier: type[ClassifierObjective]
    decomposition: type[DecompositionObjective]
    dip_i: type[DipIObjective]
    dip_ii: type[DipIIObjective]
    entropy: type[EntropyObjective]
    factor: type[FactorObjective]
    info: type[InfoObjective]
    ivae: type[IvaeObjective]
    pcl: type[PclObjective]
    slow: type[SlowObjective]
    vae: type[VaeObjective]
    wae: type[WaeObjective]
    weak_gan: type[WeakGanObjective]

objectives: _Objectives

class _Posteriors(Family):
    deterministic: type[DeterministicPosterior]
    diagonal: type[DiagonalPosterior]
    full: type[FullPosterior]

posteriors: _Posteriors

class _Priors(Family):
    anisotropic: type[AnisotropicPrior]
    anisotropic_learned: type[AnisotropicLearnedPrior]
    conditional: type[ConditionalPrior]
    isotropic: type[IsotropicPrior]
    mixture: type[MixturePrior]
    sparse: type[SparsePrior]
    student_t: type[StudentPrior]

priors: _Priors

class _Similarity(Family):
    @staticmethod
    def cka(x: ArrayInput, y: ArrayInput) -> float: ...
    @staticmethod
    def cka_debiased(x: ArrayInput, y: ArrayInput) -> float: ...
    @staticmethod
    def cka_rbf(x: ArrayInput, y: ArrayInput, *, bandwidth: float = ...) -> float: ...
    @staticmethod
    def knn(x: ArrayInput, y: ArrayInput, *, neighbours: int = ...) -> float: ...
    @staticmethod
    def procrustes(x: ArrayInput, y: ArrayInput) -> float: ...
    @staticmethod
    def rsa(x: ArrayInput, y: ArrayInput) -> float: ...
    @staticmethod
    def svcca(x: ArrayInput, y: ArrayInput, *, variance: float = ...) -> float: ...

similarity: _Similarity

class _Variants(Family):
    background: type[BackgroundVariant]
    centred: type[CentredVariant]
    colour: type[ColourVariant]
    correlated: type[CorrelatedVariant]
    cropped: type[CroppedVariant]
    flips: type[FlipsVariant]
    grey: type[GreyVariant]
    inverted: type[InvertedVariant]
    manipulated: type[ManipulatedVariant]
    noisy: type[NoisyVariant]
    padded: type[PaddedVariant]
    pixel_noise: type[PixelNoiseVariant]
    resized: type[ResizedVariant]
    scaled: type[ScaledVariant]
    standardised: type[StandardisedVariant]
    subset: type[SubsetVariant]
    unique: type[UniqueVariant]

variants: _Variants

class _Workers(Family):
    local: type[LocalWorkers]
    ray: type[RayWorkers]
    slurm: type[SlurmWorkers]

workers: _Workers
