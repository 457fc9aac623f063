import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dccm.arrays import Bytes
from dccm.data.loader import Batch, Loader, images_at_once
from tests.support import few_examples

CPU = torch.device("cpu")


def numbered(count: int, side: int = 2, channels: int = 3) -> Bytes:
    """Images that carry their own number, in two bytes of their first pixel."""
    images = np.zeros((count, side, side, channels), dtype=np.uint8)
    images[:, 0, 0, 0] = np.arange(count) % 256
    images[:, 0, 0, 1] = np.arange(count) // 256
    return images


def numbers(images: torch.Tensor) -> list[int]:
    pixels = (images[:, :2, 0, 0] * 255).round().long()
    return (pixels[:, 0] + 256 * pixels[:, 1]).tolist()


def loader(count: int, batch_size: int, seed: int = 0) -> Loader:
    return Loader(numbered(count), batch_size=batch_size, seed=seed, device=CPU)


def drawn(batch: Batch) -> list[float]:
    return torch.rand(3, generator=batch.generator).tolist()


@few_examples
@given(count=st.integers(1, 700), batch_size=st.integers(1, 300), seed=st.integers(0, 2**40), epoch=st.integers(0, 500))
def test_every_image_comes_exactly_once_an_epoch_with_its_position(
    count: int, batch_size: int, seed: int, epoch: int
) -> None:
    batches = list(loader(count, batch_size, seed).shuffled(epoch))
    seen = [number for batch in batches for number in numbers(batch.images)]
    assert seen == [number for batch in batches for number in batch.index.tolist()]
    assert sorted(seen) == list(range(count))


@few_examples
@given(count=st.integers(2, 700), batch_size=st.integers(3, 300))
def test_batches_are_of_nearly_equal_size_and_none_is_a_single_image(count: int, batch_size: int) -> None:
    whole = loader(count, batch_size)
    sizes = [len(batch.images) for batch in whole.shuffled(0)]
    assert len(sizes) == whole.batches
    assert max(sizes) - min(sizes) <= 1
    assert min(sizes) >= 2
    # No number of batches comes closer to the size that was asked for by more than rounding.
    assert abs(count / batch_size - len(sizes)) <= 0.5 or len(sizes) == 1


def test_batches_of_a_data_set_that_divides_evenly_have_the_size_asked_for() -> None:
    assert [len(batch.images) for batch in loader(120, 40).shuffled(0)] == [40, 40, 40]


def test_order_depends_on_seed_and_epoch_and_nothing_else() -> None:
    def order(seed: int, epoch: int, batch_size: int = 10) -> list[int]:
        return [number for batch in loader(50, batch_size, seed).shuffled(epoch) for number in batch.index.tolist()]

    expected = order(seed=1, epoch=2)
    np.random.seed(7)  # noqa: NPY002
    torch.manual_seed(7)
    assert order(seed=1, epoch=2) == expected
    assert order(seed=1, epoch=2, batch_size=25) == expected
    assert order(seed=1, epoch=3) != expected
    assert order(seed=2, epoch=2) != expected
    assert order(seed=2, epoch=1) != expected


def test_order_does_not_depend_on_what_was_read_before() -> None:
    used = loader(50, 10)
    list(used.shuffled(0))
    list(used.ordered())
    list(used.calibrating())
    again = [batch.index.tolist() for batch in used.shuffled(1)]
    assert again == [batch.index.tolist() for batch in loader(50, 10).shuffled(1)]


@pytest.mark.parametrize("start", [0, 1, 3, 5, 6])
def test_start_skips_so_many_batches_and_goes_on_with_the_same_images_and_draws(start: int) -> None:
    whole = list(loader(53, 10).shuffled(4))
    rest = list(loader(53, 10).shuffled(4, start=start))
    assert len(whole) == 5
    assert len(rest) == max(0, 5 - start)
    for expected, found in zip(whole[start:], rest, strict=True):
        assert torch.equal(found.images, expected.images)
        assert torch.equal(found.index, expected.index)
        assert drawn(found) == drawn(expected)


def test_every_batch_of_every_epoch_and_seed_has_draws_of_its_own() -> None:
    draws = [
        tuple(drawn(batch)) for seed in (0, 1) for epoch in (0, 1, 2) for batch in loader(40, 10, seed).shuffled(epoch)
    ]
    assert len(set(draws)) == 2 * 3 * 4


def test_draws_on_one_batch_leave_those_of_the_next_alone() -> None:
    first, second = loader(20, 10).shuffled(0)
    torch.rand(1000, generator=first.generator)
    untouched = list(loader(20, 10).shuffled(0))[1]
    assert drawn(second) == drawn(untouched)


@pytest.mark.parametrize("chunk", [2, 7, 20, 50])
def test_ordered_images_come_in_their_own_order(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    source = loader(20, 10)
    height, width = source.images.shape[1:3]
    monkeypatch.setattr("dccm.data.loader._PIXELS", chunk * height * width)
    chunks = list(source.ordered())
    assert [number for images in chunks for number in numbers(images)] == list(range(20))
    assert all(len(images) == chunk for images in chunks[:-1])


def test_more_images_than_one_chunk_come_in_order_too() -> None:
    assert [number for images in loader(600, 10).ordered() for number in numbers(images)] == list(range(600))


def test_a_sample_is_drawn_from_all_images_without_repetition() -> None:
    drawn = [
        [number for images in loader(600, 10, seed).sampled(60) for number in numbers(images)] for seed in (0, 0, 1)
    ]
    assert drawn[0] == drawn[1] != drawn[2]
    assert drawn[0] == sorted(set(drawn[0]))
    assert len(drawn[0]) == 60
    assert len({number % 10 for number in drawn[0]}) == 10  # Classes that take turns are all in it.
    assert [number for images in loader(600, 10).sampled(600) for number in numbers(images)] == list(range(600))


def test_a_function_is_asked_about_every_image_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dccm.data.loader._PIXELS", 4 * 7)
    rows = loader(20, 5).over_all(lambda images: torch.tensor([[float(number), 1.0] for number in numbers(images)]))
    assert rows[:, 0].tolist() == list(range(20))
    assert rows.shape == (20, 2)
    assert rows.dtype == np.float32


def test_calibration_sees_all_images_once_in_the_same_random_batches_every_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    height, width = loader(2, 2).images.shape[1:3]
    monkeypatch.setattr("dccm.data.loader._PIXELS", 1000 * height * width)
    first, second = ([numbers(images) for images in loader(2100, 32).calibrating()] for _ in range(2))
    assert first == second
    assert [len(batch) for batch in first] == [1050, 1050]
    assert sorted(number for batch in first for number in batch) == list(range(2100))
    assert max(first[0]) > 1100  # not simply the first half


def test_large_images_still_come_in_numbers_that_have_statistics() -> None:
    assert images_at_once(32, 32) == images_at_once(32, 32, statistics=True) == 256
    assert images_at_once(96, 96) == 28
    assert images_at_once(96, 96, statistics=True) == 128
    assert images_at_once(5000, 5000) == 2


def test_floats_are_the_bytes_divided_by_255_with_channels_first() -> None:
    images = np.arange(2 * 4 * 5 * 3, dtype=np.uint8).reshape(2, 4, 5, 3)
    images[0, 0, 0] = [0, 128, 255]
    (found,) = Loader(images, batch_size=2, seed=0, device=CPU).ordered()
    assert found.dtype == torch.float32
    assert found.shape == (2, 3, 4, 5)
    torch.testing.assert_close(found, torch.from_numpy(images.astype(np.float32).transpose(0, 3, 1, 2) / 255))
    assert found[0, :, 0, 0].tolist() == pytest.approx([0, 128 / 255, 1])
    assert found.is_contiguous(memory_format=torch.channels_last)


def test_bytes_that_were_given_are_left_as_they_were() -> None:
    images = numbered(30)
    before = images.copy()
    whole = Loader(images, batch_size=10, seed=0, device=CPU)
    for _ in (*whole.shuffled(0), *whole.ordered()):
        pass
    assert (images == before).all()
    assert len(whole) == 30


def test_batch_has_no_room_for_a_label() -> None:
    assert {field.name for field in dataclasses.fields(Batch)} == {"images", "index", "generator", "done", "views"}


def test_images_that_stay_on_the_device_give_the_same_batches() -> None:
    images = numbered(25, side=3)
    plain, kept = (
        Loader(images, batch_size=6, seed=1, device=torch.device("cpu"), resident=resident)
        for resident in (False, True)
    )
    for one, other in zip(plain.shuffled(2), kept.shuffled(2), strict=True):
        assert torch.equal(one.images, other.images)
        assert one.images.stride() == other.images.stride()
    assert torch.equal(torch.cat(list(plain.ordered())), torch.cat(list(kept.ordered())))
    assert torch.equal(torch.cat(list(plain.calibrating())), torch.cat(list(kept.calibrating())))


def test_a_mapped_file_gives_the_same_batches_as_the_array(tmp_path: Path) -> None:
    images = numbered(25, side=3)
    np.save(tmp_path / "images.npy", images)
    mapped = np.load(tmp_path / "images.npy", mmap_mode="r")
    plain, other = (Loader(source, batch_size=6, seed=1, device=torch.device("cpu")) for source in (images, mapped))
    for one, two in zip(plain.shuffled(0), other.shuffled(0), strict=True):
        assert torch.equal(one.images, two.images)
    assert torch.equal(torch.cat(list(plain.ordered())), torch.cat(list(other.ordered())))


def test_vectors_in_the_place_of_images_come_as_they_are() -> None:
    vectors = np.random.default_rng(0).normal(size=(10, 1, 1, 7)).astype(np.float16)
    loader = Loader(vectors, batch_size=5, seed=0, device=torch.device("cpu"))
    [found] = loader.ordered()
    assert found.dtype == torch.float32
    assert np.array_equal(found.numpy()[:, :, 0, 0], vectors[:, 0, 0].astype(np.float32))
    assert images_at_once(1, 1) == images_at_once(1, 1, statistics=True) == 4096


def test_images_are_drawn_as_often_as_is_asked_and_those_that_are_not_calibrate_nothing() -> None:
    times = np.array([1, 0, 3, 1, 1, 2, 0, 1, 1, 1])
    partial = Loader(numbered(10), batch_size=4, seed=0, device=CPU, times=times)
    batches = list(partial.shuffled(0))
    assert len(batches) == partial.batches == 3  # Of eleven draws.
    places = torch.cat([batch.index for batch in batches])
    assert np.bincount(places, minlength=10).tolist() == times.tolist()
    assert [number for batch in batches for number in numbers(batch.images)] == places.tolist()
    calibrating = [number for images in partial.calibrating() for number in numbers(images)]
    assert sorted(calibrating) == [0, 2, 3, 4, 5, 7, 8, 9]
    assert (len(partial), [number for images in partial.ordered() for number in numbers(images)]) == (10, [*range(10)])


def test_to_draw_each_image_once_is_what_happens_anyway() -> None:
    usual, once = loader(10, 4), Loader(numbered(10), batch_size=4, seed=0, device=CPU, times=np.ones(10, np.int64))
    for epoch in range(2):
        pairs = zip(usual.shuffled(epoch), once.shuffled(epoch), strict=True)
        assert all(torch.equal(first.index, second.index) for first, second in pairs)
