import pytest
import torch

from dccm.methods.per_image import PerImage


def test_rows_of_any_number_are_loaded() -> None:
    kept, fresh = PerImage(2), PerImage(2)
    kept.fill(torch.arange(6.0).view(3, 2))
    fresh.load_state_dict(kept.state_dict())
    assert fresh.rows.tolist() == [[0, 1], [2, 3], [4, 5]]
    fresh.load_state_dict(PerImage(2).state_dict())
    assert fresh.rows.shape == (0, 2)


def test_rows_of_another_shape_are_refused() -> None:
    kept = PerImage(3)
    kept.fill(torch.zeros(4, 3))
    with pytest.raises(RuntimeError, match="size mismatch"):
        PerImage(2).load_state_dict(kept.state_dict())


def test_loaded_rows_share_no_memory_with_their_file() -> None:
    kept, fresh = PerImage(dtype=torch.int64), PerImage(dtype=torch.int64)
    kept.fill(torch.arange(3))
    fresh.load_state_dict(kept.state_dict())
    fresh.rows[0] = 7
    assert kept.rows.tolist() == [0, 1, 2]


def test_forgotten_rows_leave_an_empty_buffer_of_the_same_kind() -> None:
    kept = PerImage(dtype=torch.int64)
    kept.fill(torch.tensor([3.0, 4.0]))
    assert kept.rows.dtype == torch.int64
    kept.forget()
    assert kept.rows.shape == (0,)
    assert kept.rows.dtype == torch.int64
    assert kept.rows.untyped_storage().nbytes() == 0
