"""Files that run code when they are opened: they are refused with the way to pass the model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from polariscope.core.errors import InputError
from polariscope.models.adapters import AbstractAdapter, Foreign, Opened, adapter

ENDINGS = {
    ".ckpt": "load_from_checkpoint of its LightningModule",
    ".pt": "torch.load",
    ".pth": "torch.load",
    ".pkl": "the library that wrote it",
    ".joblib": "joblib.load",
    ".keras": "keras.models.load_model",
    ".h5": "keras.models.load_model",
}
"""Endings of files that can contain code, and the function that opens them."""
PYTHAE = ("model_config.json", "model.pt")
SCVI = "model.pt"


@adapter("pickled", order=15)
class PickledAdapter(AbstractAdapter):
    """Checkpoints and folders that contain pickles, such as those of Lightning, pythae and scvi-tools: not opened."""

    def recognises(self, thing: object) -> bool:
        if not isinstance(thing, Path):
            return False
        is_folder = thing.is_dir() and (thing / SCVI).is_file()
        return is_folder or (thing.suffix in ENDINGS and thing.is_file())

    def open(self, thing: Foreign, data: object, options: Mapping[str, object]) -> Opened:
        if thing.is_dir():
            is_pythae = all((thing / name).is_file() for name in PYTHAE)
            library = "pythae" if is_pythae else "another library"
            loader = "AutoModel.load_from_folder of pythae" if is_pythae else "its library"
            problem = f"{thing} is a folder of {library} with pickles"
        else:
            loader = ENDINGS[thing.suffix]
            problem = f"{thing} can contain a pickle"
        raise InputError(
            problem=f"{problem}, which run code when they are opened"
            if thing.is_dir()
            else f"{problem}, which runs code when it is opened",
            remedy=f"if you trust it, open it with {loader} and pass the model object",
        )
