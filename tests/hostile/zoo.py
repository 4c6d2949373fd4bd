"""A zoo of files: bombs, pickles, pipes, loops, names that are not text, and models that no training wrote.

Each animal is a function that writes files into a folder; :data:`ZOO` says which commands meet it.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import pickle
import shlex
import shutil
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from hostile.trials import CANARY, Trial

Maker = Callable[[Path], None]
ANIMALS: dict[str, Maker] = {}
ZOO: list[tuple[str, str, tuple[str, ...]]] = []
"""Name of the animal, command line, and folders that the command needs."""
LIFELESS: set[str] = set()
"""Animals that no command can compute a result from."""

ARRAY_COMMANDS = ("data info x.npy", "train x.npy --net linear --latents 2 --steps 2 --out out --quiet")
CODE_COMMANDS = (
    *("diagnose x.npz --bootstrap 5", "score x.npz --metrics mig", "data info x.npz"),
    *(
        "report x.npz --out out.html",
        "encode x.npz --csv out.csv",
        "compare x.npz x.npz",
        "stability x.npz x.npz",
    ),
)
TABLE_COMMANDS = ("data info x.csv", "train x.csv --net linear --latents 2 --steps 2 --out out --quiet")
PICTURE_COMMANDS = (
    *("data info x", "data preview x --out out.png --samples 2"),
    "train x --net linear --latents 2 --steps 2 --out out --quiet",
)
MODEL_COMMANDS = (
    *("diagnose r0 --samples 60 --bootstrap 5", "score r0 --samples 60 --metrics mig", "show r0", "check r0"),
    *("encode r0 --samples 20 --csv out.csv", "table r0", "report r0 --out out.html"),
)
RUN_COMMANDS = (*MODEL_COMMANDS, "course r0 --samples 60", "compare r0 --samples 20")
STUDY_COMMANDS = tuple(
    f"study {verb} s.toml" for verb in ("plan", "status", "run", "table", "clean", "report")
)


def animal(*commands: str, needs: tuple[str, ...] = ()) -> Callable[[Maker], Maker]:
    """Register an animal for some commands."""

    def register(maker: Maker) -> Maker:
        name = maker.__name__.replace("_", " ")
        ANIMALS[name] = maker
        ZOO.extend((name, command, needs) for command in commands)
        return maker

    return register


def trials() -> Iterator[Trial]:
    """Yield every command with every animal that it meets, and work in processes of every kind."""
    for method in ("fork", "spawn", "forkserver"):
        yield Trial(
            "processes", (POOL.format(method=method),), is_python=True, needs=("r0",), animal="nothing"
        )
    for name, line, needs in ZOO:
        must_refuse = name in LIFELESS and line.split()[0] in ("diagnose", "score", "encode", "train")
        yield Trial("zoo", tuple(shlex.split(line)), needs=needs, animal=name, must_refuse=must_refuse)


POOL = """
import multiprocessing
from hostile.jobs import diagnosis
from hostile.odd import expect
with multiprocessing.get_context("{method}").Pool(2) as pool:
    found = pool.map(diagnosis, [0, 1])
expect(found == [diagnosis(0), diagnosis(1)], "{method} gives another result")
"""


class Trap:
    """An object that writes a file when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {CANARY}",)


def npy(array: np.ndarray, header: str | None = None, cut: int | None = None) -> bytes:
    """Return an .npy file, with another header or without its end."""
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=True)
    content = buffer.getvalue()
    if header is not None:
        padded = header.encode("latin1").ljust(117) + b"\n"
        content = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(padded)) + padded + array.tobytes()
    return content[:cut]


def npz(path: Path, entries: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> None:
    """Write a zip with these entries."""
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)


# Arrays


@animal(*ARRAY_COMMANDS)
def pickled_array(folder: Path) -> None:
    np.save(folder / "x.npy", np.array([Trap()], dtype=object), allow_pickle=True)


@animal(*ARRAY_COMMANDS)
def pickle_named_npy(folder: Path) -> None:
    (folder / "x.npy").write_bytes(pickle.dumps(Trap()))


@animal(*ARRAY_COMMANDS)
def header_with_code(folder: Path) -> None:
    code = f"__import__('os').system('touch {CANARY}')"
    text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({code}, 2)}}"
    (folder / "x.npy").write_bytes(npy(np.zeros((4, 2)), text))


@animal(*ARRAY_COMMANDS)
def array_of_a_trillion_rows(folder: Path) -> None:
    text = "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000, 8)}"
    (folder / "x.npy").write_bytes(npy(np.zeros((4, 2)), text))


@animal(*ARRAY_COMMANDS)
def array_with_negative_shape(folder: Path) -> None:
    (folder / "x.npy").write_bytes(
        npy(np.zeros((4, 2)), "{'descr': '<f8', 'fortran_order': False, 'shape': (-4, -2)}")
    )


@animal(*ARRAY_COMMANDS)
def array_without_an_end(folder: Path) -> None:
    (folder / "x.npy").write_bytes(npy(np.zeros((400, 3)), cut=500))


@animal(*ARRAY_COMMANDS)
def header_that_does_not_end(folder: Path) -> None:
    (folder / "x.npy").write_bytes(npy(np.zeros((4, 2)), "{'descr': '<f8', 'fortran_order': ((((((((("))


@animal(*ARRAY_COMMANDS)
def records_instead_of_numbers(folder: Path) -> None:
    np.save(folder / "x.npy", np.zeros(9, dtype=[("a", "<f8"), ("b", "<U4")]))


@animal(*ARRAY_COMMANDS)
def integers_that_floats_cannot_hold(folder: Path) -> None:
    np.save(folder / "x.npy", 2**60 + np.arange(60, dtype=np.int64).reshape(20, 3))


@animal(*ARRAY_COMMANDS)
def values_of_1e300(folder: Path) -> None:
    np.save(folder / "x.npy", np.linspace(-1e300, 1e300, 60).reshape(20, 3))


# Codes


@animal(*CODE_COMMANDS)
def pickled_codes(folder: Path) -> None:
    npz(folder / "x.npz", {"mean.npy": npy(np.array([Trap()], dtype=object))})


@animal(*CODE_COMMANDS)
def zip_bomb(folder: Path) -> None:
    """An entry of 4 MB that unpacks to 4.2 GB: the same compressed block of zeros again and again."""
    text = "{'descr': '<f8', 'fortran_order': False, 'shape': (174999995, 3)}"
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    begin = packer.compress(npy(np.zeros((0, 3)), text)) + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(bytes(10**7)) + packer.flush(zlib.Z_FULL_FLUSH)
    content, name = begin + block * 420 + packer.flush(), b"mean.npy"
    fields = struct.pack("<HHHHHIIIHH", 20, 0, 8, 0, 0x21, 0, len(content), 4_200_000_000, len(name), 0)
    local = b"PK\x03\x04" + fields + name
    entry = b"PK\x01\x02" + struct.pack("<H", 20) + fields + struct.pack("<HHHII", 0, 0, 0, 0, 0) + name
    start = len(local) + len(content)
    end = b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, 1, 1, len(entry), start, 0)
    (folder / "x.npz").write_bytes(local + content + entry + end)


@animal(*CODE_COMMANDS)
def entry_that_declares_a_terabyte(folder: Path) -> None:
    npz(folder / "x.npz", {"mean.npy": npy(np.zeros((9, 2)))}, zipfile.ZIP_STORED)
    content = bytearray((folder / "x.npz").read_bytes())
    for signature, offset in ((b"PK\x03\x04", 18), (b"PK\x01\x02", 20)):
        start = content.index(signature) + offset
        content[start : start + 8] = struct.pack("<II", 0xFFFFFFFE, 0xFFFFFFFE)
    (folder / "x.npz").write_bytes(bytes(content))


@animal(*CODE_COMMANDS)
def entries_that_climb_out(folder: Path) -> None:
    rows = npy(np.zeros((9, 2)))
    npz(
        folder / "x.npz",
        {f"../{CANARY}": rows, f"/tmp/{CANARY}.npy": rows, "mean.npy": rows, "variance.npy": rows},
    )


@animal(*CODE_COMMANDS)
def entry_named_with_a_null(folder: Path) -> None:
    npz(folder / "x.npz", {"me\0an.npy": npy(np.zeros((9, 2))), "mean.npy": npy(np.ones((9, 2)))})


@animal(*CODE_COMMANDS)
def codes_twice_under_one_name(folder: Path) -> None:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with zipfile.ZipFile(folder / "x.npz", "w") as archive:
            for value in (1.0, 2.0):
                archive.writestr("mean.npy", npy(np.full((9, 2), value)))


@animal(*CODE_COMMANDS)
def npz_without_an_end(folder: Path) -> None:
    dice = np.random.default_rng(0)
    np.savez(folder / "x.npz", mean=dice.normal(size=(50, 3)), variance=np.ones((50, 3)))
    os.truncate(folder / "x.npz", 1000)


@animal(*CODE_COMMANDS)
def tar_named_npz(folder: Path) -> None:
    with tarfile.open(folder / "x.npz", "w") as archive:
        archive.addfile(tarfile.TarInfo("mean.npy"), io.BytesIO(b""))


@animal(*CODE_COMMANDS)
def names_of_factors_that_are_not_text(folder: Path) -> None:
    dice = np.random.default_rng(0)
    codes = {
        "mean": dice.normal(size=(40, 2)),
        "variance": np.ones((40, 2)),
        "factors": dice.integers(3, size=(40, 2)),
    }
    np.savez(
        folder / "x.npz", **codes, factor_names=np.array([1.5, np.nan]), factor_kinds=np.array(["", "\ud800"])
    )


@animal(*CODE_COMMANDS)
def variances_of_1e300_and_1e_320(folder: Path) -> None:
    mean = np.random.default_rng(0).normal(size=(40, 2))
    np.savez(folder / "x.npz", mean=mean, variance=np.tile([1e300, 1e-320], (40, 1)))


@animal(*CODE_COMMANDS)
def no_rows(folder: Path) -> None:
    np.savez(
        folder / "x.npz",
        mean=np.zeros((0, 2)),
        variance=np.zeros((0, 2)),
        factors=np.zeros((0, 1), dtype=int),
    )


@animal(*CODE_COMMANDS)
def no_latents(folder: Path) -> None:
    np.savez(
        folder / "x.npz",
        mean=np.zeros((20, 0)),
        variance=np.zeros((20, 0)),
        factors=np.zeros((20, 1), dtype=int),
    )


# Tables


@animal("data info x.csv.gz --max-unpacked 0.05")
def gzip_bomb(folder: Path) -> None:
    """Members of 10 MB each, whose trailers declare 10 MB; together they have 500 MB."""
    (folder / "x.csv.gz").write_bytes(gzip.compress(b"0,0\n" * 2_500_000) * 50)


@animal("data info x.csv.gz")
def gzip_without_an_end(folder: Path) -> None:
    (folder / "x.csv.gz").write_bytes(gzip.compress(b"a,b\n" + b"1,2\n3,4\n" * 500)[:60])


@animal(*TABLE_COMMANDS)
def one_line_of_ten_megabytes(folder: Path) -> None:
    (folder / "x.csv").write_text("a,b\n" + "1" * 10_000_000 + ",2\n3,4\n")


@animal(*TABLE_COMMANDS)
def ten_thousand_columns(folder: Path) -> None:
    rows = [",".join(str(column + row) for column in range(10_000)) for row in range(3)]
    (folder / "x.csv").write_text("\n".join(rows))


@animal(*TABLE_COMMANDS)
def null_bytes_in_a_table(folder: Path) -> None:
    (folder / "x.csv").write_bytes(b"a,b\n1,\x002\n3,4\n\x00\x00\x00\n")


@animal(*TABLE_COMMANDS)
def table_in_utf16(folder: Path) -> None:
    (folder / "x.csv").write_bytes("a,b\n1,2\n3,4\n5,6\n".encode("utf-16"))


@animal(*TABLE_COMMANDS)
def open_quote(folder: Path) -> None:
    (folder / "x.csv").write_text('a,b\n"1,2\n' + "3,4\n" * 40_000)


@animal(*TABLE_COMMANDS)
def formulas_in_a_table(folder: Path) -> None:
    (folder / "x.csv").write_text(f"=cmd|' /C touch {CANARY}'!A0,b\n1,2\n3,4\n5,6\n7,8\n")


@animal("data info x.parquet", "train x.parquet --net linear --latents 2 --steps 2 --out out --quiet")
def parquet_without_an_end(folder: Path) -> None:
    import pandas

    pandas.DataFrame({"a": range(50), "b": range(50)}).to_parquet(folder / "x.parquet")
    os.truncate(folder / "x.parquet", 700)


@animal("data info x.parquet", "train x.parquet --net linear --latents 2 --steps 2 --out out --quiet")
def parquet_of_lists(folder: Path) -> None:
    import pandas

    pandas.DataFrame({"a": [[1, 2], [3]], "b": [{"c": 1}, {"c": 2}]}).to_parquet(folder / "x.parquet")


# HDF5


def _h5(folder: Path, build: Callable[[Any], None], name: str = "x.h5ad") -> None:
    import h5py

    with h5py.File(folder / "secret.h5", "w") as file:
        file["X"] = np.full((20, 3), 7.0)
    (folder / "secret.bin").write_bytes(np.full((20, 3), 7.0).tobytes())
    with h5py.File(folder / name, "w") as file:
        build(file)


ANNDATA_COMMANDS = ("data info x.h5ad", "train x.h5ad --net linear --latents 2 --steps 2 --out out --quiet")


@animal(*ANNDATA_COMMANDS)
def link_to_another_hdf5_file(folder: Path) -> None:
    import h5py

    _h5(folder, lambda file: file.__setitem__("X", h5py.ExternalLink("secret.h5", "/X")))


@animal(*ANNDATA_COMMANDS)
def hdf5_with_external_storage(folder: Path) -> None:
    _h5(folder, lambda file: file.create_dataset("X", (20, 3), "<f8", external=[("secret.bin", 0, 480)]))


@animal(*ANNDATA_COMMANDS)
def hdf5_links_in_a_circle(folder: Path) -> None:
    import h5py

    def build(file: Any) -> None:
        file["X"] = h5py.SoftLink("/Y")
        file["Y"] = h5py.SoftLink("/X")

    _h5(folder, build)


@animal(*ANNDATA_COMMANDS)
def hdf5_of_a_terabyte(folder: Path) -> None:
    _h5(folder, lambda file: file.create_dataset("X", (10**7, 10**4), "<f8", chunks=(1000, 100)))


@animal(*ANNDATA_COMMANDS)
def hdf5_without_an_end(folder: Path) -> None:
    _h5(folder, lambda file: file.create_dataset("X", data=np.zeros((50, 3))))
    os.truncate(folder / "x.h5ad", 900)


# Pictures


def _pictures(folder: Path, count: int = 4) -> Path:
    from PIL import Image

    (folder / "x").mkdir()
    dice = np.random.default_rng(0)
    for index in range(count):
        Image.fromarray(dice.integers(256, size=(8, 8), dtype=np.uint8)).save(folder / "x" / f"{index}.png")
    return folder / "x"


def png(width: int, height: int, rows: bytes = b"", bits: int = 8) -> bytes:
    """Return a grey PNG file that declares a size."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return (
            struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
        )

    header = struct.pack(">IIBBBBB", width, height, bits, 0, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


@animal(*PICTURE_COMMANDS)
def png_without_an_end(folder: Path) -> None:
    os.truncate(_pictures(folder) / "2.png", 60)


@animal(*PICTURE_COMMANDS)
def jpeg_without_an_end(folder: Path) -> None:
    from PIL import Image

    x = _pictures(folder)
    Image.fromarray(np.random.default_rng(0).integers(256, size=(64, 64), dtype=np.uint8)).save(x / "9.jpg")
    os.truncate(x / "9.jpg", 700)


@animal(*PICTURE_COMMANDS)
def png_of_ten_billion_pixels(folder: Path) -> None:
    (_pictures(folder) / "2.png").write_bytes(png(100_000, 100_000))


@animal(*PICTURE_COMMANDS)
def png_bomb(folder: Path) -> None:
    (_pictures(folder) / "2.png").write_bytes(png(20_000, 20_000, bytes(20_000 * 2501), bits=1))


@animal(*PICTURE_COMMANDS)
def png_of_no_pixels(folder: Path) -> None:
    (_pictures(folder) / "2.png").write_bytes(png(0, 8))


@animal(*PICTURE_COMMANDS)
def pickle_named_png(folder: Path) -> None:
    (_pictures(folder) / "2.png").write_bytes(pickle.dumps(Trap()))


@animal(*PICTURE_COMMANDS)
def empty_picture(folder: Path) -> None:
    (_pictures(folder) / "2.png").write_bytes(b"")


@animal(*PICTURE_COMMANDS)
def folder_named_png(folder: Path) -> None:
    (_pictures(folder) / "a.png").mkdir()


@animal(*PICTURE_COMMANDS)
def pipe_named_png(folder: Path) -> None:
    os.mkfifo(_pictures(folder) / "a.png")


@animal(*PICTURE_COMMANDS)
def folder_that_contains_itself(folder: Path) -> None:
    (_pictures(folder) / "again").symlink_to(folder / "x", target_is_directory=True)


@animal(*PICTURE_COMMANDS)
def link_to_itself_among_pictures(folder: Path) -> None:
    (_pictures(folder) / "a.png").symlink_to(folder / "x" / "a.png")


@animal(*PICTURE_COMMANDS)
def pictures_named_in_bytes(folder: Path) -> None:
    x = _pictures(folder)
    for name in (b"\xff\xfe.png", b"new\nline.png", b"-rf.png", b"n" * 250 + b".png"):
        shutil.copy(x / "0.png", os.path.join(os.fsencode(x), name))


@animal(*PICTURE_COMMANDS)
def pictures_of_several_sizes_and_kinds(folder: Path) -> None:
    from PIL import Image

    x = _pictures(folder)
    Image.new("CMYK", (9, 7)).save(x / "a.jpg")
    Image.new("I;16", (8, 8)).save(x / "b.png")
    Image.new("P", (8, 8)).save(x / "c.gif")
    Image.new("RGBA", (8, 8)).save(x / "d.png")


# Archives of published datasets


@animal("data info cars3d:x", "train cars3d:x --steps 1 --out out --quiet")
def tar_that_climbs_out(folder: Path) -> None:
    (folder / "x").mkdir()
    with tarfile.open(folder / "x" / "nips2015-analogy-data.tar.gz", "w:gz") as archive:
        for name, kind, target in (
            (f"../../{CANARY}", tarfile.REGTYPE, ""),
            ("data/cars/link", tarfile.SYMTYPE, "/etc/passwd"),
            ("data/cars/car_000_mesh.mat", tarfile.LNKTYPE, "/etc/passwd"),
            ("data/cars/car_001_mesh.mat", tarfile.FIFOTYPE, ""),
            ("data/cars/car_002_mesh.mat", tarfile.CHRTYPE, ""),
        ):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, target
            archive.addfile(info, io.BytesIO(b""))


@animal("data info symsol:x", "train symsol:x --steps 1 --out out --quiet")
def zip_that_climbs_out(folder: Path) -> None:
    (folder / "x").mkdir()
    npz(folder / "x" / "symsol_reduced.zip", {f"../../{CANARY}": b"x", "images/cube/000.png": png(8, 8)})


@animal("data info mnist:x", "train mnist:x --steps 1 --out out --quiet")
def idx_of_a_billion_images(folder: Path) -> None:
    (folder / "x").mkdir()
    for part in ("train", "t10k"):
        for kind, sizes in (("images-idx3", (10**9, 28, 28)), ("labels-idx1", (10**9,))):
            header = struct.pack(f">HBB{len(sizes)}I", 0, 8, len(sizes), *sizes)
            (folder / "x" / f"{part}-{kind}-ubyte.gz").write_bytes(gzip.compress(header + bytes(100)))


@animal("data info dsprites:x", "train dsprites:x --steps 1 --out out --quiet")
def dsprites_with_code(folder: Path) -> None:
    (folder / "x").mkdir()
    arrays = {"imgs": np.zeros((4, 64, 64), np.uint8), "latents_classes": np.zeros((4, 6), int)}
    trap = np.array({"trap": Trap()}, dtype=object)
    np.savez(folder / "x" / "dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz", **arrays, metadata=trap)


# Models


def _resigned(folder: Path, change: Callable[[dict[str, Any], dict[str, Any]], None]) -> None:
    """Write the model of a run again with other tensors or metadata, and with the hash that belongs to them."""
    from polariscope.core import files
    from polariscope.storage import model_file

    tensors, metadata = files.read_tensors(model_file(folder / "r0"))
    change(tensors, metadata)
    files.write_tensors(model_file(folder / "r0"), tensors, metadata)


@animal(*MODEL_COMMANDS, needs=("r0",))
def model_that_is_a_pickle(folder: Path) -> None:
    (folder / "r0" / "model.safetensors").write_bytes(pickle.dumps(Trap()))


@animal(*MODEL_COMMANDS, needs=("r0",))
def model_with_a_header_of_an_exabyte(folder: Path) -> None:
    (folder / "r0" / "model.safetensors").write_bytes(struct.pack("<Q", 2**60) + b"{}")


@animal(*MODEL_COMMANDS, needs=("r0",))
def model_whose_tensors_overlap(folder: Path) -> None:
    header = json.dumps(
        {name: {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]} for name in "ab"}
    ).encode()
    (folder / "r0" / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(16))


@animal(*MODEL_COMMANDS, needs=("r0",))
def model_of_integers(folder: Path) -> None:
    import torch

    _resigned(
        folder,
        lambda tensors, _: tensors.update(
            {key: (9 * value).to(torch.int32) for key, value in tensors.items()}
        ),
    )


@animal(*MODEL_COMMANDS, needs=("r0",))
def model_of_nan(folder: Path) -> None:
    _resigned(
        folder,
        lambda tensors, _: tensors.update({key: value * float("nan") for key, value in tensors.items()}),
    )


@animal(*MODEL_COMMANDS, needs=("r0",))
def model_of_infinity(folder: Path) -> None:
    _resigned(
        folder,
        lambda tensors, _: tensors.update({key: value * 1e38 * 1e38 for key, value in tensors.items()}),
    )


@animal(*MODEL_COMMANDS, needs=("r0",))
def model_without_a_tensor(folder: Path) -> None:
    _resigned(folder, lambda tensors, _: tensors.__delitem__(sorted(tensors)[0]))


@animal(*MODEL_COMMANDS, needs=("r0",))
def model_of_another_shape(folder: Path) -> None:
    _resigned(
        folder, lambda tensors, _: tensors.update({key: value[..., :1] for key, value in tensors.items()})
    )


@animal(*MODEL_COMMANDS, needs=("r0",))
def model_of_a_billion_latents(folder: Path) -> None:
    _resigned(folder, lambda _, metadata: metadata["blueprint"].update(n_latents=10**9))


@animal(*MODEL_COMMANDS, needs=("r0",))
def model_of_huge_images(folder: Path) -> None:
    _resigned(folder, lambda _, metadata: metadata["blueprint"].update(shape=[1, 4000, 4000]))


@animal(*MODEL_COMMANDS, needs=("r0",))
def model_of_an_unknown_net(folder: Path) -> None:
    _resigned(folder, lambda _, metadata: metadata["blueprint"]["net"].update(name="os.system"))


@animal(*MODEL_COMMANDS, needs=("r0",))
def model_without_a_blueprint(folder: Path) -> None:
    _resigned(folder, lambda _, metadata: metadata.clear())


LIFELESS |= {name for name in ANIMALS if name.startswith(("model ", "hdf5 ", "link to another hdf5"))}
LIFELESS |= {
    "pickled array",
    "pickle named npy",
    "header with code",
    "pickled codes",
    "integers that floats cannot hold",
}

# Pipes, devices, loops and folders in place of files


def _replace(name: str, put: Callable[[Path], None]) -> Maker:
    def make(folder: Path) -> None:
        path = folder / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        put(path)

    return make


KINDS: dict[str, Callable[[Path], None]] = {
    "a pipe": os.mkfifo,
    "a folder": Path.mkdir,
    "a link to itself": lambda path: path.symlink_to(path),
    "a link to nothing": lambda path: path.symlink_to("nowhere"),
    "a link to /dev/zero": lambda path: path.symlink_to("/dev/zero"),
    "a link to /dev/urandom": lambda path: path.symlink_to("/dev/urandom"),
}
PLACES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "x.csv": (TABLE_COMMANDS, ()),
    "x.npy": (ARRAY_COMMANDS, ()),
    "x.npz": (CODE_COMMANDS, ()),
    "options.toml": (("score codes.npz --metrics mig --config options.toml",), ("codes.npz",)),
    "s.toml": (STUDY_COMMANDS, ()),
    "study/study.json": (STUDY_COMMANDS, ("s.toml", "study")),
    **{
        f"r0/{name}": (RUN_COMMANDS, ("r0",))
        for name in ("settings.json", "log.jsonl", "model.safetensors", ".asked.json", "checkpoints", ".lock")
    },
    "r0/checkpoints/step-20/model.safetensors": (RUN_COMMANDS, ("r0",)),
    "originals/train-images-idx3-ubyte.gz": (("data info mnist:originals",), ("originals", "cache")),
    "cache/arrays": (
        ("data preview mnist:originals --out out.png", "data clean --yes"),
        ("originals", "cache"),
    ),
    "search/size.json": (("show search", "check search"), ("search",)),
    "out.csv": (("encode codes.npz --csv out.csv",), ("codes.npz",)),
    "out.json": (("diagnose codes.npz --bootstrap 5 --json out.json",), ("codes.npz",)),
    "out": (
        (
            "train digits --net linear --latents 2 --steps 2 --out out --quiet",
            "compare codes.npz codes.npz --out out",
        ),
        ("codes.npz",),
    ),
}
for _place, (_commands, _needs) in PLACES.items():
    for _kind, _put in KINDS.items():
        ANIMALS[f"{_place} is {_kind}"] = _replace(_place, _put)
        ZOO.extend((f"{_place} is {_kind}", command, _needs) for command in _commands)


# Outputs that are inputs


def nothing(folder: Path) -> None:
    """Write nothing: the command line itself is hostile."""


def link_loop(folder: Path) -> None:
    """Write a link to itself, named loop."""
    (folder / "loop").symlink_to(folder / "loop")


ANIMALS |= {"nothing": nothing, "link loop": link_loop}
OVERWRITING = (
    ("report r0 --samples 60 --out r0/settings.json", ("r0",)),
    ("report r0 --samples 60 --out r0/log.jsonl", ("r0",)),
    ("diagnose codes.npz --bootstrap 5 --json codes.npz", ("codes.npz",)),
    ("diagnose r0 --samples 60 --bootstrap 5 --json r0/model.safetensors", ("r0",)),
    ("score codes.npz --metrics mig --json codes.npz", ("codes.npz",)),
    (
        "score codes.npz --metrics mig --config options.toml --json options.toml",
        ("codes.npz", "options.toml"),
    ),
    ("encode codes.npz --csv codes.npz", ("codes.npz",)),
    ("encode r0 --samples 60 --csv r0/settings.json", ("r0",)),
    ("course r0 --samples 60 --csv r0/log.jsonl", ("r0",)),
    ("table r0 r1 --csv r1/settings.json", ("r0", "r1")),
    ("stability r0 r1 --samples 60 --csv r0/model.safetensors", ("r0", "r1")),
    ("compare r0 r1 --samples 20 --out r0/settings.json", ("r0", "r1")),
    ("report codes.npz --out codes.npz", ("codes.npz",)),
    ("data preview rows.csv --out rows.csv", ("rows.csv",)),
    ("data preview pictures --out pictures/00.png", ("pictures",)),
    ("study table s.toml --out s.toml", ("s.toml", "study")),
    ("study table s.toml --out study/study.json", ("s.toml", "study")),
    ("study report s.toml --out s.toml", ("s.toml", "study")),
    ("study sql s.toml \"copy runs to 's.toml'\"", ("s.toml", "study")),
    ("study sql s.toml \"copy runs to 'study/study.json' (format json)\"", ("s.toml", "study")),
    ('study sql s.toml "install httpfs"', ("s.toml", "study")),
    ("study sql s.toml \"select * from read_text('/etc/passwd')\"", ("s.toml", "study")),
    ("study sql s.toml \"attach 'ESCAPED' as other; create table other.a as select 1\"", ("s.toml", "study")),
    ("study sql s.toml \"export database 'ESCAPED'\"", ("s.toml", "study")),
    ("study clean s.toml --yes", ("s.toml", "study", "r0")),
    ("train digits --net linear --latents 2 --steps 2 --out rows.csv --quiet", ("rows.csv",)),
    ("train digits --net linear --latents 2 --steps 2 --out r0 --quiet", ("r0",)),
    ("train digits --net linear --latents 2 --steps 2 --out search --quiet", ("search",)),
    ("size gaussian --n-samples 60 --steps 400 --cap 2 --out r0 --quiet", ("r0",)),
    ("manipulate r0 r1 --steps 1 --out r0", ("r0", "r1")),
    ("manipulate r0 r1 --steps 1 --out search", ("r0", "r1", "search")),
    ("demo --steps 2 --out rows.csv", ("rows.csv",)),
    ("demo --steps 2 --out r0", ("r0",)),
    ("encode codes.npz --csv ''", ("codes.npz",)),
    ("report codes.npz --out ''", ("codes.npz",)),
    ("train digits --steps 2 --out ''", ()),
    ("train digits --steps 2 --out '~nouser/x'", ()),
    ("data info '~nouser/x.csv'", ()),
    ("diagnose '~nouser/x.npz'", ()),
)
"""Commands whose output is a file that must not be lost, and odd targets."""
ZOO.extend(("nothing", line, needs) for line, needs in OVERWRITING)


@animal("study clean s.toml --yes", "study status s.toml", needs=("s.toml", "study", "r0"))
def study_whose_folder_has_other_runs(folder: Path) -> None:
    for name in ("mine", "0123456789abcdef"):
        shutil.copytree(folder / "r0", folder / "study" / "runs" / name)
    (folder / "study" / "runs" / "by-hand").mkdir()
    (folder / "study" / "runs" / "by-hand" / "thesis.txt").write_text("years of work")
