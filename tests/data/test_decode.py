import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from dccm.data.decode import FORMATS, MOST_BYTES, SUFFIXES, Preparation, decode, header_of, looks_like_image
from dccm.errors import UserError
from tests.data.pictures import Pixels, encoded, headed, noise, png, put

SMALL = Preparation((8, 8))
LOSSLESS: dict[str, dict[str, Any]] = {"PNG": {}, "BMP": {}, "TIFF": {}, "PPM": {}, "WEBP": {"lossless": True}}
LOSSY: dict[str, dict[str, Any]] = {"JPEG": {"quality": 95}, "MPO": {"quality": 95}, "GIF": {}, "AVIF": {"quality": 95}}


def flat(mode: str, colour: object) -> Image.Image:
    return Image.new(mode, (16, 16), colour)  # type: ignore[arg-type]


def colour_of(content: bytes | Image.Image, channels: int | None = None) -> list[int]:
    """The one colour of a decoded image."""
    found = decode(content, Preparation((8, 8), "crop", channels))
    assert found.shape == (8, 8, channels or 3)
    assert found.dtype == np.uint8
    assert (found == found[0, 0]).all()
    return [int(value) for value in found[0, 0]]


@pytest.mark.parametrize("kind", LOSSLESS)
def test_lossless_files_of_the_right_size_keep_every_pixel(kind: str) -> None:
    picture = noise()
    assert np.array_equal(decode(encoded(picture, kind, **LOSSLESS[kind]), Preparation((24, 24))), picture)


@pytest.mark.parametrize("kind", LOSSY)
def test_lossy_files_look_as_they_should(kind: str) -> None:
    picture = photo(48, 48)
    found = decode(encoded(picture, kind, **LOSSY[kind]), Preparation((48, 48)))
    assert np.abs(found.astype(int) - picture).mean() < 8


def with_palette(**options: Any) -> bytes:
    image = flat("P", 1)
    image.putpalette([0, 0, 0, 10, 200, 30])
    return encoded(image, "PNG", **options)


def deep(value: float, kind: str, dtype: str) -> bytes:
    return encoded(np.full((16, 16), value, dtype=dtype), kind)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (with_palette(), [10, 200, 30]),
        (with_palette(transparency=1), [255, 255, 255]),
        (encoded(flat("CMYK", (0, 255, 255, 0)), "TIFF"), [255, 0, 0]),
        (encoded(flat("CMYK", (0, 0, 0, 255)), "JPEG", quality=95), [0, 0, 0]),
        (encoded(flat("1", 1)), [255, 255, 255]),
        (encoded(flat("L", 90)), [90, 90, 90]),
        (encoded(flat("LA", (90, 255))), [90, 90, 90]),
        (encoded(flat("LA", (90, 0))), [255, 255, 255]),
        (encoded(flat("RGBA", (1, 2, 3, 255))), [1, 2, 3]),
        (encoded(flat("RGBA", (1, 2, 3, 0))), [255, 255, 255]),
        (encoded(flat("RGBA", (0, 0, 0, 128))), [127, 127, 127]),
        (encoded(flat("RGB", (1, 2, 3)), "PNG", transparency=(1, 2, 3)), [255, 255, 255]),
        (encoded(flat("RGB", (9, 9, 9)), "PNG", transparency=(1, 2, 3)), [9, 9, 9]),
        (deep(7 * 257, "PNG", "uint16"), [7, 7, 7]),
        (deep(32768, "PNG", "uint16"), [128, 128, 128]),
        (deep(65535, "TIFF", "uint16"), [255, 255, 255]),
        (deep(7 * 257, "TIFF", ">u2"), [7, 7, 7]),
        (deep(200, "TIFF", "int32"), [200, 200, 200]),
        (deep(-5, "TIFF", "int32"), [0, 0, 0]),
        (deep(0.5, "TIFF", "float32"), [128, 128, 128]),
        (deep(200.0, "TIFF", "float32"), [200, 200, 200]),
        (deep(65535.0, "TIFF", "float32"), [255, 255, 255]),
    ],
)
def test_every_mode_becomes_eight_bits_of_colour_on_white(content: bytes, expected: list[int]) -> None:
    found = colour_of(content)
    assert np.abs(np.subtract(found, expected)).max() <= 1


def test_colour_becomes_grey_by_luminance_if_asked() -> None:
    assert colour_of(encoded(flat("RGB", (255, 0, 0))), channels=1) == [76]
    assert colour_of(encoded(flat("L", 90)), channels=1) == [90]
    assert colour_of(encoded(flat("RGBA", (0, 0, 0, 0))), channels=1) == [255]


def test_pixels_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="its pixels are not all numbers"):
        decode(deep(float("nan"), "TIFF", "float32"), SMALL)


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG", "TIFF"])
def test_the_first_of_several_frames_counts(kind: str) -> None:
    others = [flat("RGB", (0, 0, 255)), flat("RGB", (0, 255, 0))]
    lossless = {"lossless": True} if kind == "WEBP" else {}
    content = encoded(flat("RGB", (255, 0, 0)), kind, save_all=True, append_images=others, **lossless)
    assert colour_of(content) == [255, 0, 0]


def arrow() -> Pixels:
    """A picture that no turn or mirror leaves as it is: a tall arrow with one barb and a grey foot.

    It is pale, as resizing clips what overshoots black or white, so that the order of rows and columns would matter.
    """
    pixels = np.full((32, 24, 3), 60, dtype=np.uint8)
    pixels[4:, 10:14] = (190, 190, 60)
    pixels[4:8, 14:22] = (190, 60, 60)
    pixels[24:, 2:10] = 120
    return pixels


def upright(stored: Pixels, orientation: int) -> Pixels:
    """What the EXIF standard says the viewer sees, from the pixels as the camera stored them."""
    seen = {
        1: stored,
        2: stored[:, ::-1],
        3: stored[::-1, ::-1],
        4: stored[::-1],
        5: stored.transpose(1, 0, 2),
        6: np.rot90(stored, -1),
        7: np.rot90(stored, 2).transpose(1, 0, 2),
        8: np.rot90(stored, 1),
    }
    return np.ascontiguousarray(seen[orientation])


def turned(orientation: object) -> Image.Exif:
    exif = Image.Exif()
    exif[0x0112] = orientation
    return exif


@pytest.mark.parametrize("fit", ["crop", "pad"])
@pytest.mark.parametrize("kind", ["PNG", "WEBP", "TIFF", "JPEG"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_photo_is_turned_as_its_exif_says(orientation: int, kind: str, fit: Any) -> None:
    options = LOSSLESS.get(kind, {"quality": 100, "subsampling": 0})
    content = encoded(arrow(), kind, exif=turned(orientation), **options)
    wanted = Preparation((16, 16), fit)
    expected = decode(encoded(upright(arrow(), orientation)), wanted)
    assert np.abs(decode(content, wanted).astype(int) - expected).max() <= (4 if kind == "JPEG" else 1)


def test_an_open_image_is_turned_too() -> None:
    with Image.open(io.BytesIO(encoded(arrow(), "JPEG", exif=turned(6), quality=100, subsampling=0))) as image:
        found = decode(image, Preparation((16, 16)))
    assert np.abs(found.astype(int) - decode(upright(arrow(), 6), Preparation((16, 16)))).max() <= 4


ABSURD: dict[str, Any] = {
    **{f"orientation {number}": turned(number) for number in (0, 9, 65535)},
    "broken": b"Exif\0\0MM\0*\xff\xff\xff\xff" + bytes(range(40)),
    "empty": b"Exif\0\0",
    "nonsense": b"nonsense",
}


@pytest.mark.filterwarnings("ignore:Corrupt EXIF data")
@pytest.mark.parametrize("exif", ABSURD.values(), ids=ABSURD)
@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_an_absurd_note_about_the_camera_leaves_the_picture_as_it_is(kind: str, exif: Any) -> None:
    found = decode(encoded(arrow(), kind, exif=exif), Preparation((16, 16)))
    assert np.abs(found.astype(int) - decode(encoded(arrow(), kind), Preparation((16, 16)))).max() == 0


def test_cropping_keeps_the_middle_and_padding_keeps_all() -> None:
    wide = np.full((20, 60, 3), 50, dtype=np.uint8)
    wide[:, 20:40] = 250
    cropped = decode(encoded(wide), Preparation((20, 20)))
    assert (cropped == 250).all()
    padded = decode(encoded(wide), Preparation((60, 60), "pad"))
    assert np.array_equal(padded[20:40], wide)
    assert padded[:20].max() == padded[40:].max() == 0
    tall = decode(encoded(wide.transpose(1, 0, 2)), Preparation((60, 60), "pad"))
    assert np.array_equal(tall, padded.transpose(1, 0, 2))


def photo(height: int, width: int) -> Pixels:
    """Soft light and soft edges, as in a photo."""
    y, x = np.mgrid[0 : 1 : 1j * height, 0 : 1 : 1j * width]
    red = 90 + 80 * np.sin(5 * x + 2 * y)
    green = 120 + 60 * np.cos(4 * y) + 40 * np.tanh(8 * (x - y))
    blue = 80 + 120 * np.exp(-12 * ((x - 0.4) ** 2 + (y - 0.6) ** 2))
    return np.stack([red, green, blue], axis=-1).clip(0, 255).astype(np.uint8)


@pytest.mark.parametrize("size", [(600, 800), (1000, 400), (301, 299)])
def test_jpeg_decoded_at_reduced_size_looks_like_full_decoding(size: tuple[int, int]) -> None:
    content = encoded(photo(*size), "JPEG", quality=92)
    with Image.open(io.BytesIO(content)) as image:
        full = decode(np.asarray(image), Preparation((64, 64)))
    difference = np.abs(decode(content, Preparation((64, 64))).astype(int) - full)
    assert 0 < difference.mean() < 2  # Nought would mean that nothing was reduced.


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
@pytest.mark.parametrize(
    ("width", "height", "words"),
    [(12_000, 12_000, "12000 x 12000 pixels are more than 100,000,000"), (60_000, 60_000, "3600000000 pixels")],
)
def test_a_small_file_that_would_fill_the_memory_is_refused(width: int, height: int, words: str) -> None:
    with pytest.raises(Exception, match=words):
        decode(headed(width, height), SMALL)


def test_a_file_of_too_many_bytes_is_refused_before_it_is_read(tmp_path: Path) -> None:
    with (tmp_path / "large.png").open("wb") as file:
        file.truncate(MOST_BYTES + 1)  # A hole, which takes no room on the disk.
    with pytest.raises(ValueError, match="the file has 536,870,913 bytes, more than 536,870,912"):
        decode(tmp_path / "large.png", SMALL)


@pytest.mark.parametrize("kind", ["EPS", "PCX", "ICO", "TGA", "PDF", "DDS", "SGI", "JPEG2000"])
def test_formats_outside_the_list_are_refused(kind: str, tmp_path: Path) -> None:
    content = encoded(noise(), kind)
    assert kind not in FORMATS
    with pytest.raises(OSError, match="cannot identify image file"):
        decode(content, SMALL)
    with pytest.raises(OSError, match="cannot identify image file"):
        decode(put(tmp_path / "a.png", content), SMALL)


def test_postscript_is_never_given_to_its_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_: object, **__: object) -> None:
        raise AssertionError("a program was started")

    monkeypatch.setattr("subprocess.Popen", run)
    monkeypatch.setattr("subprocess.check_call", run)
    with pytest.raises(OSError, match="cannot identify image file"):
        decode(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\nshowpage\n", SMALL)


def test_the_content_tells_the_format_and_not_the_name(tmp_path: Path) -> None:
    assert np.array_equal(decode(put(tmp_path / "a.jpg", png()), Preparation((24, 24))), noise())
    assert np.array_equal(decode(put(tmp_path / "a", png()), Preparation((24, 24))), noise())


@pytest.mark.parametrize("cut", [0, 1, 7, 8, 30, 60, 200])
@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "BMP", "WEBP"])
def test_a_file_that_ends_too_early_is_refused(kind: str, cut: int) -> None:
    with pytest.raises(Exception, match="."):
        decode(encoded(noise(), kind)[:cut], SMALL)


def test_arrays_of_pixels_are_images() -> None:
    picture = noise()
    assert np.array_equal(decode(picture, Preparation((24, 24))), picture)
    assert np.array_equal(decode(picture[..., 0], Preparation((24, 24), channels=1))[..., 0], picture[..., 0])
    assert np.array_equal(decode(picture[..., :1], Preparation((24, 24), channels=1)), picture[..., :1])
    assert np.array_equal(decode(picture / 255, Preparation((24, 24))), picture)
    assert np.array_equal(decode(picture > 127, Preparation((24, 24))), (picture > 127) * np.uint8(255))
    clear = np.dstack([picture, np.zeros((24, 24), dtype=np.uint8)])
    assert decode(clear, SMALL).min() == 255


@pytest.mark.parametrize(
    ("pixels", "words"),
    [
        (np.zeros((2, 3, 8, 8)), r"must have the shape \(H, W\) or \(H, W, C\), got \(2, 3, 8, 8\)"),
        (np.zeros((0, 8)), r"must have the shape .* got \(0, 8\)"),
        (np.array(None), r"must have the shape .* got \(\)"),
        (np.full((8, 8), 2.5), r"must be uint8 or floats in \[0, 1\], got float64"),
        (np.full((8, 8), np.nan), r"must be uint8 or floats in \[0, 1\], got float64"),
        (np.zeros((8, 8), dtype=np.int64), r"must be uint8 or floats in \[0, 1\], got int64"),
    ],
)
def test_arrays_that_are_no_picture_are_refused(pixels: np.ndarray, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        decode(pixels, SMALL)


@pytest.mark.parametrize("kind", FORMATS)
def test_images_are_known_by_how_they_begin(kind: str, tmp_path: Path) -> None:
    assert looks_like_image(put(tmp_path / "picture", encoded(noise(), kind)))


@pytest.mark.parametrize("content", [b"", b"B", b"just text", b"%!PS", b"RIFF\0\0\0\0WAVEfmt ", b"\0\0\0\x20ftypmp42"])
def test_other_files_are_not_taken_for_images(content: bytes, tmp_path: Path) -> None:
    assert not looks_like_image(put(tmp_path / "file", content))


def test_shorter_side_and_colour_are_known_without_decoding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wide = arrow().transpose(1, 0, 2)
    content = encoded(wide)
    monkeypatch.setattr(Image.Image, "load", None)
    given = (content, put(tmp_path / "a.png", content), arrow(), Image.fromarray(arrow()))
    assert [header_of(item) for item in given] == [(24, True)] * 4
    assert [header_of(Image.new(mode, (9, 8))).colour for mode in ("1", "L", "LA", "I;16", "F")] == [False] * 5
    assert [header_of(Image.new(mode, (9, 8))).colour for mode in ("P", "RGBA", "CMYK")] == [True] * 3


def test_every_suffix_is_of_a_format_that_is_tried() -> None:
    kinds = {Image.registered_extensions()[suffix] for suffix in SUFFIXES}
    assert kinds - {"MPO"} == set(FORMATS)  # Several JPEG pictures in one file, which Pillow reads as JPEG.


def test_what_images_are_brought_to_must_make_sense() -> None:
    with pytest.raises(UserError, match=r"image_size must be at least 8 pixels, got 7\. Take 32, 64 or 96"):
        Preparation((8, 7))
    with pytest.raises(UserError, match="fit must be 'crop', 'pad' or 'stretch', got 'squeeze'"):
        Preparation((8, 8), "squeeze")  # type: ignore[arg-type]
    with pytest.raises(UserError, match="channels must be 1 for grey, 3 for colour, or None, got 2"):
        Preparation((8, 8), channels=2)
