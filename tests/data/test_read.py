from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from dccm.data.images import ImageSet
from dccm.data.read import open_source, read_images
from dccm.data.sources.archive import Tar, Zip
from dccm.data.sources.arrays import ArraySource
from dccm.data.sources.base import Source
from dccm.data.sources.folder import Folder
from dccm.data.sources.listing import Listing
from dccm.data.sources.objects import HuggingFace, Torch
from dccm.errors import UserError
from tests.data.pictures import encoded, headed, noise, photos, png, put
from tests.data.sources.archives import tar, zipped


def save(path: Path, size: tuple[int, int] = (40, 40), colour: object = (200, 10, 10), mode: str = "RGB") -> Path:
    return put(path, encoded(Image.new(mode, size, colour), path.suffix[1:].replace("jpg", "jpeg")))  # type: ignore[arg-type]


def test_a_folder_is_read_with_all_its_folders_in_the_order_of_names(tmp_path: Path) -> None:
    for name in ("b.png", "a.jpg", "sub/c.bmp"):
        save(tmp_path / name)
    image_set = read_images(tmp_path)
    assert image_set.names == ["a.jpg", "b.png", "sub/c.bmp"]
    assert image_set.images.shape == (3, 32, 32, 3)
    assert image_set.labels is None


def test_images_of_mixed_sizes_become_squares_of_one_side_from_their_middle(tmp_path: Path) -> None:
    wide = np.zeros((40, 120, 3), dtype=np.uint8)
    wide[:, 40:80] = 255
    put(tmp_path / "wide.png", encoded(wide))
    save(tmp_path / "tall.png", (20, 90), (255, 255, 255))
    image_set = read_images(tmp_path, image_size=16)
    assert image_set.images.shape == (2, 16, 16, 1)
    assert image_set.images.min() > 200
    padded = read_images(tmp_path, image_size=16, fit="pad")
    assert padded.images[:, 0, 0].max() == 0


@pytest.mark.parametrize(("size", "side"), [((20, 20), 32), ((50, 70), 64), ((300, 400), 96)])
def test_a_folder_gets_the_papers_side_nearest_to_its_images(tmp_path: Path, size: tuple[int, int], side: int) -> None:
    save(tmp_path / "a.png", size)
    assert read_images(tmp_path).images.shape[1:3] == (side, side)


def test_the_side_is_that_of_most_images_and_broken_ones_have_no_say(tmp_path: Path) -> None:
    for number in range(3):
        save(tmp_path / f"large-{number}.png", (90 + number, 100))
        put(tmp_path / f"broken-{number}.png", b"nothing")
    save(tmp_path / "small.png", (8, 8))
    assert read_images(tmp_path).images.shape == (4, 96, 96, 3)


def test_a_picture_that_is_far_too_large_is_skipped_without_a_warning(
    tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    put(tmp_path / "huge.png", headed(12_000, 12_000))
    save(tmp_path / "a.png")
    image_set = read_images(tmp_path)
    assert image_set.skipped == [("huge.png", "12000 x 12000 pixels are more than 100,000,000")]
    assert list(recwarn) == []


def test_grey_files_stay_grey_unless_one_has_colour_or_colour_is_asked_for(tmp_path: Path) -> None:
    save(tmp_path / "a.png", colour=90, mode="L")
    assert read_images(tmp_path).images.shape[3] == 1
    assert read_images(tmp_path, channels=3).images.shape[3] == 3
    save(tmp_path / "b.png")
    assert read_images(tmp_path).images.shape[3] == 3
    assert read_images(tmp_path, channels=1).images.shape[3] == 1


def test_unreadable_files_among_readable_ones_are_skipped_with_a_reason(tmp_path: Path) -> None:
    good = save(tmp_path / "good.png")
    (tmp_path / "empty.jpg").touch()
    (tmp_path / "text.png").write_text("not an image")
    (tmp_path / "cut.png").write_bytes(good.read_bytes()[:60])
    (tmp_path / "notes.txt").write_text("not asked for")
    image_set = read_images(tmp_path)
    assert image_set.names == ["good.png"]
    assert [file.path for file in image_set.skipped] == ["cut.png", "empty.jpg", "text.png"]
    assert all(file.reason for file in image_set.skipped)
    assert image_set.skipped[2].reason == "not an image of a known format"


def test_duplicates_are_named_with_the_first_that_is_the_same(tmp_path: Path) -> None:
    photos(tmp_path, 3)
    put(tmp_path / "copy.png", png(1))
    put(tmp_path / "other format.bmp", encoded(noise(1), "BMP"))
    image_set = read_images(tmp_path)
    assert len(image_set.images) == 5
    assert image_set.duplicates == [("copy.png", "01.png"), ("other format.bmp", "01.png")]


def test_folders_are_classes_only_if_asked(tmp_path: Path) -> None:
    for name in ("cat/1.png", "cat/2.png", "dog/1.png"):
        save(tmp_path / name)
    put(tmp_path / "cat" / "0.png", b"broken")
    assert read_images(tmp_path).labels is None
    labels = read_images(tmp_path, class_folders=True).labels
    assert labels is not None
    assert labels.tolist() == ["cat", "cat", "dog"]


@pytest.mark.parametrize("count", [0, 1])
def test_a_folder_without_images_is_refused(tmp_path: Path, count: int) -> None:
    for number in range(count):
        (tmp_path / f"{number}.txt").write_text("x")
    files = "1 file" if count == 1 else f"{count} files"
    with pytest.raises(UserError, match=f"There is no image in .*: it has {files}, and none .* Give a folder"):
        read_images(tmp_path)


def test_a_folder_of_broken_images_is_refused_with_the_first_reason(tmp_path: Path) -> None:
    put(tmp_path / "a.png", b"x")
    with pytest.raises(UserError, match=r"has 1 image, and none can be read; the first, a\.png: not an image"):
        read_images(tmp_path)


def test_a_missing_source_and_a_strange_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="There is no file, folder or data set .*nowhere. Give a folder of images, a"):
        read_images(tmp_path / "nowhere")
    put(tmp_path / "a.doc", b"x")
    with pytest.raises(UserError, match=r"a\.doc is of no kind that can be read. Give a folder of images, a zip"):
        read_images(str(tmp_path / "a.doc"))


def test_a_data_set_that_was_nearly_named_is_suggested() -> None:
    with pytest.raises(UserError, match=r"no file, folder or data set cifra10\. Did you mean 'cifar10'\?"):
        read_images("cifra10")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"channels": 2}, "channels must be 1 for grey, 3 for colour, or None, got 2"),
        ({"fit": "squeeze"}, "fit must be 'crop', 'pad' or 'stretch', got 'squeeze'"),
        ({"image_size": -8}, "image_size must be at least 8 pixels, got -8"),
    ],
)
def test_options_that_no_image_can_be_brought_to_are_refused(
    tmp_path: Path, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(UserError, match=words):
        read_images(photos(tmp_path, 1), **options)


class Columns:
    """The part of a Hugging Face data set by which it is known."""

    column_names = ("image",)
    features = {"image": None}  # noqa: RUF012 - never changed

    def __len__(self) -> int:
        return 1


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *[("photos", Folder), ("a.zip", Zip), ("A.ZIP", Zip), ("a.tar", Tar), ("a.tar.gz", Tar), ("a.tgz", Tar)],
        *[("a.txt", Listing), ("a.csv", Listing), ("a.npy", ArraySource), ("a.npz", ArraySource)],
    ],
)
def test_the_name_of_a_path_tells_its_kind(tmp_path: Path, name: str, kind: type[Source]) -> None:
    path = tmp_path / name
    match path.suffix.lower():
        case "":
            photos(path, 1)
        case ".zip":
            zipped(path, {"0.png": png()})
        case ".tar" | ".gz" | ".tgz":
            tar(path, {"0.png": png()})
        case ".npy":
            np.save(path, noise()[np.newaxis])
        case ".npz":
            np.savez(path, images=noise()[np.newaxis])
        case _:
            put(tmp_path / "0.png", png())
            path.write_text("path\n0.png\n")
    assert type(open_source(path)) is kind
    assert len(open_source(str(path))) == 1


def test_the_behaviour_of_an_object_tells_its_kind() -> None:
    array = ArraySource(noise()[np.newaxis])
    assert open_source(array) is array
    assert type(open_source(noise()[np.newaxis])) is ArraySource
    assert type(open_source(torch.zeros(2, 1, 8, 8))) is ArraySource
    assert type(open_source(Columns())) is HuggingFace
    assert type(open_source([noise()])) is Torch


def test_several_splits_are_refused() -> None:
    class Splits(Columns):
        def keys(self) -> list[str]:
            return ["train", "test"]

    with pytest.raises(UserError, match=r"several splits: train, test\. Choose one, for example dataset\['train'\]"):
        open_source(Splits())


def test_an_image_set_is_taken_as_it_is_with_its_names_labels_and_splits() -> None:
    given = ImageSet(noise()[np.newaxis], ["mine"], np.array([7]), splits=np.array(["test"]))
    image_set = read_images(given)
    assert image_set.images is given.images
    assert image_set.names == ["mine"]
    assert image_set.labels is given.labels
    assert image_set.splits is given.splits


def test_arrays_keep_their_size_unless_one_is_asked_for() -> None:
    images = np.stack([noise(0, 20), noise(1, 20), noise(0, 20)])
    image_set = read_images(images)
    assert image_set.images is images
    assert image_set.duplicates == [("2", "0")]
    assert read_images(images, image_size=16, channels=1).images.shape == (3, 16, 16, 1)


@pytest.mark.parametrize("channels", [1, 3])
def test_tensors_have_their_channels_first(channels: int) -> None:
    tensor = torch.rand(2, channels, 8, 6, generator=torch.Generator().manual_seed(0))
    found = read_images(tensor).images
    assert found.shape == (2, 8, 6, channels)
    assert np.abs(found / 255 - tensor.numpy().transpose(0, 2, 3, 1)).max() <= 0.5 / 255 + 1e-6
    assert read_images(torch.zeros(2, 8, 6, requires_grad=True)).images.shape == (2, 8, 6, 1)


def test_arrays_are_read_from_npy_and_npz_with_labels(tmp_path: Path) -> None:
    images = np.arange(2 * 8 * 8, dtype=np.uint8).reshape(2, 8, 8)
    np.save(tmp_path / "a.npy", images)
    np.savez(tmp_path / "a.npz", images=images, labels=[3, 4])
    assert np.array_equal(read_images(tmp_path / "a.npy").images[..., 0], images)
    image_set = read_images(tmp_path / "a.npz", image_size=16, channels=3)
    assert image_set.images.shape == (2, 16, 16, 3)
    assert image_set.labels is not None
    assert image_set.labels.tolist() == [3, 4]


def test_splits_are_read_from_npz_and_must_fit(tmp_path: Path) -> None:
    images = np.zeros((2, 8, 8), dtype=np.uint8)
    np.savez(tmp_path / "a.npz", images=images, splits=["train", "test"])
    image_set = read_images(tmp_path / "a.npz", image_size=16)
    assert image_set.splits is not None
    assert image_set.splits.tolist() == ["train", "test"]
    for splits in (["train"], [0, 1]):
        np.savez(tmp_path / "b.npz", images=images, splits=splits)
        with pytest.raises(UserError, match=r"b.npz must hold one split, such as 'train', for each of its 2 images"):
            read_images(tmp_path / "b.npz")


def test_array_files_that_are_broken_or_hold_objects_are_refused(tmp_path: Path) -> None:
    for name, content in (("junk.npy", b"junk"), ("empty.npy", b""), ("junk.npz", b"junk"), ("cut.npz", b"PK\3\4abc")):
        put(tmp_path / name, content)
        with pytest.raises(UserError, match=rf"{name} is broken \(.*\); save it anew with numpy\.save"):
            read_images(tmp_path / name)
    np.save(tmp_path / "b.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(UserError, match=r"b\.npy is broken \(.*\); save it anew with numpy\.save"):
        read_images(tmp_path / "b.npy")
    np.savez(tmp_path / "c.npz", pictures=np.zeros((2, 8, 8), dtype=np.uint8))
    with pytest.raises(UserError, match="must hold an array 'images', it holds pictures"):
        read_images(tmp_path / "c.npz")
    np.savez(tmp_path / "d.npz", images=np.zeros((2, 8, 8), dtype=np.uint8), labels=[1])
    with pytest.raises(UserError, match="one label for each of its 2 images"):
        read_images(tmp_path / "d.npz")
