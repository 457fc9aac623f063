from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dccm.data.images import as_bytes, read_images, resized, with_channels
from dccm.errors import UserError


def save(path: Path, size: tuple[int, int] = (40, 40), colour: object = (200, 10, 10), mode: str = "RGB") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, size, colour).save(path)  # type: ignore[arg-type]
    return path


def test_a_folder_is_read_with_all_its_folders_in_the_order_of_names(tmp_path: Path) -> None:
    for name in ("b.png", "a.jpg", "sub/c.bmp"):
        save(tmp_path / name)
    found = read_images(tmp_path)
    assert found.names == ["a.jpg", "b.png", "sub/c.bmp"]
    assert found.images.shape == (3, 32, 32, 3)
    assert found.labels is None


def test_images_of_mixed_sizes_become_squares_of_one_side_from_their_middle(tmp_path: Path) -> None:
    wide = np.zeros((40, 120, 3), dtype=np.uint8)
    wide[:, 40:80] = 255
    Image.fromarray(wide).save(tmp_path / "wide.png")
    save(tmp_path / "tall.png", (20, 90), (255, 255, 255))
    found = read_images(tmp_path, image_size=16)
    assert found.images.shape == (2, 16, 16, 1)
    assert found.images.min() > 200


@pytest.mark.parametrize(("size", "side"), [((20, 20), 32), ((50, 70), 64), ((300, 400), 96)])
def test_a_folder_gets_the_papers_side_nearest_to_its_images(tmp_path: Path, size: tuple[int, int], side: int) -> None:
    save(tmp_path / "a.png", size)
    assert read_images(tmp_path).images.shape[1:3] == (side, side)


def test_grey_files_stay_grey_unless_one_has_colour(tmp_path: Path) -> None:
    save(tmp_path / "a.png", colour=90, mode="L")
    assert read_images(tmp_path).images.shape[3] == 1
    save(tmp_path / "b.png")
    assert read_images(tmp_path).images.shape[3] == 3


def test_unreadable_files_among_readable_ones_are_skipped_with_a_reason(tmp_path: Path) -> None:
    good = save(tmp_path / "good.png")
    (tmp_path / "empty.jpg").touch()
    (tmp_path / "text.png").write_text("not an image")
    (tmp_path / "cut.png").write_bytes(good.read_bytes()[:60])
    (tmp_path / "notes.txt").write_text("not asked for")
    found = read_images(tmp_path)
    assert found.names == ["good.png"]
    assert sorted(file.path for file in found.skipped) == ["cut.png", "empty.jpg", "text.png"]
    assert all(file.reason for file in found.skipped)


def test_strange_modes_are_converted(tmp_path: Path) -> None:
    for mode, colour in (("P", 3), ("CMYK", (1, 2, 3, 4)), ("RGBA", (1, 2, 3, 4)), ("LA", (9, 9)), ("1", 1)):
        save(tmp_path / f"{mode}.tif" if mode == "CMYK" else tmp_path / f"{mode}.png", colour=colour, mode=mode)
    Image.fromarray(np.full((40, 40), 32768, dtype=np.uint16)).save(tmp_path / "deep.png")
    found = read_images(tmp_path)
    assert len(found.images) == 6
    assert found.skipped == []
    assert found.images[found.names.index("deep.png")].mean() == 128


def test_a_photo_is_turned_as_its_exif_says(tmp_path: Path) -> None:
    pixels = np.zeros((40, 40), dtype=np.uint8)
    pixels[:20] = 255
    exif = Image.Exif()
    exif[0x0112] = 3  # Upside down.
    Image.fromarray(pixels).save(tmp_path / "a.jpg", exif=exif)
    found = read_images(tmp_path).images[0]
    assert found[:10].mean() < 50 < 200 < found[-10:].mean()


@pytest.mark.parametrize(
    ("files", "words"),
    [([], "There is no image in .*: of its 0 files"), (["a.txt"], "There is no image in .*: of its 1 files none ends")],
)
def test_a_folder_without_images_is_refused(tmp_path: Path, files: list[str], words: str) -> None:
    for name in files:
        (tmp_path / name).write_text("x")
    with pytest.raises(UserError, match=words):
        read_images(tmp_path)


def test_a_folder_of_broken_images_is_refused_with_the_first_reason(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_text("x")
    with pytest.raises(UserError, match=r"None of the 1 image files .* can be read; the first, a\.png: Unidentified"):
        read_images(tmp_path)


def test_a_missing_source_and_a_strange_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="There is no file or folder .*nowhere"):
        read_images(tmp_path / "nowhere")
    (tmp_path / "a.csv").write_text("x")
    with pytest.raises(UserError, match=r"a\.csv is not a folder, an \.npy or an \.npz file"):
        read_images(tmp_path / "a.csv")


def test_arrays_are_read_from_npy_and_npz_with_labels(tmp_path: Path) -> None:
    images = np.arange(2 * 8 * 8, dtype=np.uint8).reshape(2, 8, 8)
    np.save(tmp_path / "a.npy", images)
    np.savez(tmp_path / "a.npz", images=images, labels=[3, 4])
    assert np.array_equal(read_images(tmp_path / "a.npy").images[..., 0], images)
    found = read_images(tmp_path / "a.npz", image_size=16, channels=3)
    assert found.images.shape == (2, 16, 16, 3)
    assert found.labels is not None
    assert found.labels.tolist() == [3, 4]


def test_array_files_that_are_broken_or_hold_objects_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(b"junk")
    with pytest.raises(UserError, match=r"a\.npy cannot be read as an array"):
        read_images(tmp_path / "a.npy")
    np.save(tmp_path / "b.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(UserError, match=r"b\.npy cannot be read as an array"):
        read_images(tmp_path / "b.npy")
    np.savez(tmp_path / "c.npz", pictures=np.zeros((2, 8, 8), dtype=np.uint8))
    with pytest.raises(UserError, match="must hold an array 'images', it holds pictures"):
        read_images(tmp_path / "c.npz")
    np.savez(tmp_path / "d.npz", images=np.zeros((2, 8, 8), dtype=np.uint8), labels=[1])
    with pytest.raises(UserError, match="one label for each of its 2 images"):
        read_images(tmp_path / "d.npz")


def test_floats_from_0_to_1_become_bytes() -> None:
    assert as_bytes(np.full((1, 8, 8), 0.5)).tolist()[0][0][0] == [128]


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.full((2, 8, 8), 1.5), r"floats must lie in \[0, 1\], got values from 1.5 to 1.5"),
        (np.full((2, 8, 8), -0.5), r"floats must lie in \[0, 1\]"),
        (np.full((2, 8, 8), np.nan), "must not hold NaN or infinite values"),
        (np.full((2, 8, 8), np.inf), "must not hold NaN or infinite values"),
        (np.zeros((2, 8)), r"must have the shape \(N, H, W\) or \(N, H, W, C\), got \(2, 8\)"),
        (np.zeros((0, 8, 8)), "must hold at least one image"),
        (np.zeros((2, 3, 32, 32), dtype=np.uint8), "must have their channels last"),
        (np.zeros((2, 8, 8), dtype=np.int64), "must be uint8 or floats in .* got int64"),
    ],
)
def test_arrays_that_are_no_images_are_refused(array: np.ndarray, words: str) -> None:
    with pytest.raises(UserError, match=words):
        as_bytes(array)


def test_channels_are_repeated_or_weighed() -> None:
    grey = np.full((1, 8, 8, 1), 100, dtype=np.uint8)
    assert with_channels(grey, 3).shape == (1, 8, 8, 3)
    assert with_channels(with_channels(grey, 3), 1).tolist() == grey.tolist()
    with pytest.raises(UserError, match="images must have 3 channels for this model, got 4"):
        with_channels(np.zeros((1, 8, 8, 4), dtype=np.uint8), 3)


def test_any_number_of_channels_is_resized() -> None:
    images = np.full((2, 10, 14, 5), 7, dtype=np.uint8)
    assert resized(images, 12).shape == (2, 12, 12, 5)
    assert (resized(images, 12) == 7).all()
