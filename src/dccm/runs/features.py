"""Features of images by a pretrained encoder: computed once, kept in the cache beside the pixels, mapped into memory.

A folder of the cache belongs to one set of images and one encoder:

- `features.npy`: a vector of length one per image, (N, D), float16; or, where the last blocks of the encoder are
  trained, the map before them, (N, h, w, c);
- `manifest.json`: the images, the encoder and a checksum; written last, so it means "complete";
- `checked.json`: size and time of the features when their checksum was last compared;
- `progress.json`: how many vectors count while they are computed. A stopped computation goes on behind them.
"""

import hashlib
import io
import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NamedTuple
from zlib import crc32

import numpy as np

from dccm.arrays import Bytes, Floats, Halves, ImageShape, Inputs
from dccm.data.cache import locked
from dccm.data.checked import checksum as checksum_of
from dccm.data.checked import is_unharmed
from dccm.data.images import ImageSet
from dccm.documents import UNREADABLE, read_json
from dccm.errors import require
from dccm.files import cache_folder, disk_error, write_atomically
from dccm.machine import keep_memory
from dccm.methods import METHODS
from dccm.networks.encoders import SCRATCH
from dccm.networks.feature_encoder import FeatureEncoder
from dccm.networks.map_encoder import MapEncoder, open_map_encoder
from dccm.networks.pretrained import open_encoder
from dccm.npy import map_array
from dccm.runs.config import RunConfig
from dccm.runs.maps import announce, half_maps, row_bytes, row_description, row_shape
from dccm.runs.speeds import duration, expected_seconds, note_speed
from dccm.training.progress import OnProgress, Stage, ignore

FORMAT = 1
_COMMIT = 128
"""Images, at least, between two points from which a stopped computation goes on."""


class Pretrained(NamedTuple):
    """The encoder whose vectors stand in the place of images."""

    name: str
    identity: str
    image_shape: ImageShape
    """Of the images that it saw."""
    finetune: int = 0
    """Its last blocks, which the model has trained; then maps before them stand in the place of images."""


def inputs_of(image_set: ImageSet, encoder: FeatureEncoder | None, **others: Any) -> tuple[Inputs, Pretrained | None]:
    """What methods work on, and what makes the same of other images.

    Args:
        image_set: The images.
        encoder: What makes vectors of them, (N, 1, 1, D), or maps, (N, h, w, c); None: methods see the images
            themselves.
        others: As for `features_of_images`.
    """
    if encoder is None:
        return image_set.images, None
    features = features_of_images(image_set, encoder, **others)
    height, width, channels = image_set.images.shape[1:]
    blocks = encoder.blocks if isinstance(encoder, MapEncoder) else 0
    pretrained = Pretrained(encoder.name, encoder.identity, ImageShape(channels, height, width), blocks)
    return (features if blocks else features[:, np.newaxis, np.newaxis]), pretrained


def inputs_like(pretrained: Pretrained | None, image_set: ImageSet, *, device: str = "auto", **others: Any) -> Inputs:
    """New images as a model saw those that it was trained on.

    Args:
        pretrained: The encoder that made vectors of those; None: there was none.
        image_set: The new images.
        device: Where to compute.
        others: As for `features_of_images`.
    """
    if pretrained is None:
        return image_set.images
    return inputs_of(image_set, encoder_like(pretrained, device, others.get("cache")), **others)[0]


def encoder_like(pretrained: Pretrained, device: str = "auto", cache: str | Path | None = None) -> FeatureEncoder:
    """The encoder that a model was trained with; another one by the same name is refused."""
    encoder = _open(pretrained.name, pretrained.finetune, device, cache)
    require(
        encoder.identity == pretrained.identity,
        f"The model was trained on features of '{encoder.name}' with other weights or another preprocessing than are "
        f"found here ({pretrained.identity}, got {encoder.identity}). Take those that it was trained with.",
    )
    return encoder


def encoder_for(config: RunConfig, cache: str | Path | None = None) -> FeatureEncoder | None:
    """The pretrained encoder that settings name; None: the images themselves are clustered."""
    name = config.data.encoder
    require(
        name != SCRATCH or not METHODS[config.method].needs_vectors,
        f"encoder must be a pretrained one for the method '{config.method}', which clusters vectors, got '{name}'. "
        "For example encoder = 'efficientnet-lite0'.",
    )
    return None if name == SCRATCH else _open(name, config.finetune, config.training.device, cache)


def _open(name: str, finetune: int, device: str, cache: str | Path | None) -> FeatureEncoder:
    """A whole encoder, or one that is cut before the blocks that are trained."""
    if finetune:
        return open_map_encoder(name, finetune, device, cache)
    return open_encoder(name, device, cache)


def features_of_images(
    image_set: ImageSet,
    encoder: FeatureEncoder,
    *,
    cache: str | Path | None = None,
    on_progress: OnProgress = ignore,
    say: Callable[[str], None] | None = None,
) -> Halves:
    """A vector of length one per image, (N, D), mapped from the cache; what is not there yet is computed first.

    A cut encoder makes maps, which are kept as they are, (N, h, w, c).

    Args:
        image_set: The images.
        encoder: What makes vectors of them.
        cache: Folder of the cache; None: the user's.
        on_progress: Called as it gets on.
        say: Called with a sentence that the user should read.
    """
    say = say or (lambda _: None)
    wanted = _description(image_set, encoder)
    folder = Path(cache or cache_folder()) / "features" / _key(wanted)
    try:
        with locked(folder, lambda: say("Another process computes these features; waiting for it.")):
            features = open_features(folder, wanted)
            if features is None:
                if (folder / "manifest.json").exists():
                    say(f"The features in {folder} are damaged or of other images; they are computed anew.")
                    (folder / "manifest.json").unlink()
                announce(folder, wanted, wanted["images"] - _progress(folder, wanted)[0], say)
                _fill(folder, wanted, image_set, encoder, on_progress, say, cache)
                features = open_features(folder, wanted)
    except OSError as error:
        kept, again = "what is computed so far is kept", "then compute the features again, or choose another cache"
        raise disk_error(error, f"keep features in {folder}", kept, again, "cache folder") from error
    require(features is not None, f"The features in {folder} do not stay as written. Choose another cache folder.")
    assert features is not None
    return features


def open_features(folder: Path, wanted: dict[str, Any]) -> Halves | None:
    """What a folder of the cache holds, if it is complete and what is wanted."""
    path = folder / "features.npy"
    try:
        manifest = read_json(folder / "manifest.json")
        known = {path.name: manifest.pop("checksum")}
        if manifest != wanted or not is_unharmed(folder, known, [path.name]):
            return None
        features = map_array(path)
    except (*UNREADABLE, AttributeError):
        return None
    shape = (wanted["images"], *row_shape(wanted))
    whole = path.stat().st_size == len(_header(shape)) + features.nbytes
    return features if features.shape == shape and features.dtype == np.float16 and whole else None


def unit_vectors(vectors: Floats) -> Halves:
    """Vectors of length one: what differs between images is the direction, and half precision is enough for it."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):  # Of what is no number nothing else is made.
        directions: Floats = vectors / np.maximum(lengths, 1e-12)
        return directions.astype(np.float16)


def _description(image_set: ImageSet, encoder: FeatureEncoder) -> dict[str, Any]:
    """Everything that decides the features, as the manifest has it."""
    count, *shape = image_set.images.shape
    known = {"images": count, "shape": shape, "pixels": image_set.origin.checksum}
    return {"format": FORMAT} | known | {"encoder": encoder.identity} | row_description(encoder)


def _key(wanted: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(wanted).encode()).hexdigest()[:24]


def _fill(
    folder: Path,
    wanted: dict[str, Any],
    image_set: ImageSet,
    encoder: FeatureEncoder,
    on_progress: OnProgress,
    say: Callable[[str], None],
    cache: str | Path | None,
) -> None:
    """Compute what is not computed yet, and complete the folder."""
    keep_memory()
    count = wanted["images"]
    begun, checksum = _progress(folder, wanted)
    _foretell(encoder, image_set.images[begun:], say)
    started, done, committed = time.perf_counter(), begun, begun
    head = _header((count, *row_shape(wanted)))
    with _opened(folder, done) as file:
        file.write(head)
        file.truncate(len(head) + row_bytes(wanted, done))
        file.seek(0, os.SEEK_END)
        for start in range(begun, count, encoder.at_once):
            content = _computed(image_set, encoder, start).tobytes()
            file.write(content)
            checksum, done = crc32(content, checksum), min(start + encoder.at_once, count)
            if done - committed >= _COMMIT:
                _commit(folder, file, {"wanted": wanted, "done": done, "checksum": checksum})
                committed = done
            on_progress(Stage("features", done / count))
        file.flush()
        os.fsync(file.fileno())
    write_atomically(folder / "manifest.json", json.dumps(wanted | {"checksum": f"{checksum:08x}"}, indent=1) + "\n")
    (folder / "progress.json").unlink(missing_ok=True)
    note_speed(encoder, count - begun, time.perf_counter() - started, cache)


def _foretell(encoder: FeatureEncoder, images: Bytes, say: Callable[[str], None]) -> None:
    """Say how long it will take."""
    seconds = expected_seconds(encoder, images)
    if seconds is not None:
        say(
            f"The features of {len(images):,} images by {encoder.name} take about {duration(seconds)}; later runs find "
            "them in the cache."
        )


def _computed(image_set: ImageSet, encoder: FeatureEncoder, start: int) -> Halves:
    """The vectors or maps of some images."""
    halves = halves_of(encoder, image_set.images[start : start + encoder.at_once])
    bad = np.flatnonzero(~np.isfinite(halves).reshape(len(halves), -1).all(axis=1))
    if len(bad):
        name = image_set.names[start + int(bad[0])]
        require(False, f"The encoder '{encoder.name}' makes no numbers of the image {name}. Take another encoder.")
    return halves


def halves_of(encoder: FeatureEncoder, images: Bytes) -> Halves:
    """The vectors or maps of a few images, as they are kept."""
    made = encoder(images)
    return unit_vectors(made) if made.ndim == 2 else half_maps(made)


def _opened(folder: Path, done: int) -> IO[bytes]:
    """The file to append to; whoever has mapped an old one keeps it, as one cut under its map ends the process."""
    if not done:
        (folder / "features.npy").unlink(missing_ok=True)
    return (folder / "features.npy").open("r+b" if done else "w+b")


def _commit(folder: Path, file: IO[bytes], progress: dict[str, Any]) -> None:
    """From here on a stopped computation goes on behind what was appended so far."""
    file.flush()
    partial = folder / "progress.partial"
    partial.write_text(json.dumps(progress), encoding="utf-8")
    partial.replace(folder / "progress.json")


def _progress(folder: Path, wanted: dict[str, Any]) -> tuple[int, int]:
    """Vectors that count, and their checksum; a damaged computation begins anew."""
    with suppress(*UNREADABLE):
        progress = read_json(folder / "progress.json")
        done, checksum = int(progress["done"]), int(progress["checksum"])
        head = len(_header((wanted["images"], *row_shape(wanted))))
        same = progress["wanted"] == wanted and 0 < done <= wanted["images"]
        if same and checksum_of(folder / "features.npy", head + row_bytes(wanted, done)) == checksum:
            return done, checksum
    return 0, 0


def _header(shape: tuple[int, ...]) -> bytes:
    """The head of an .npy file of vectors."""
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": "<f2", "fortran_order": False, "shape": shape})
    return buffer.getvalue()
