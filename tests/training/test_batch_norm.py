import pytest
import torch
from torch import Tensor, nn

from dccm.training.batch_norm import batch_norm
from tests.support import seeded
from tests.training.thread_team import together

SHAPES = [(7, 3), (7, 3, 4, 5)]


def made(shape: tuple[int, ...], momentum: float | None = 0.1) -> nn.BatchNorm1d | nn.BatchNorm2d:
    kind = nn.BatchNorm1d if len(shape) == 2 else nn.BatchNorm2d
    norm = kind(3, momentum=momentum).double()
    with torch.no_grad():
        norm.weight.copy_(torch.tensor([0.5, 2.0, -1.0]))
        norm.bias.copy_(torch.tensor([0.1, -0.2, 0.3]))
    return norm


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("workers", [1, 3, 8])
def test_rows_that_are_divided_are_normed_as_if_they_were_together(shape: tuple[int, ...], workers: int) -> None:
    rows = torch.randn(shape, generator=seeded(), dtype=torch.float64) * 3 + 100
    slope = torch.randn(shape, generator=seeded(1), dtype=torch.float64)
    usual, whole = made(shape), rows.clone().requires_grad_()
    expected = usual(whole)
    expected.backward(slope)

    def part(team: object) -> tuple[Tensor, Tensor, Tensor, nn.Module]:
        rank = team.place.rank  # type: ignore[attr-defined]
        norm, own = made(shape), rows[rank::workers].clone().requires_grad_()
        found = batch_norm(norm, own, team.team.add_up)  # type: ignore[attr-defined]
        found.backward(slope[rank::workers])
        assert own.grad is not None
        assert norm.weight.grad is not None
        return found.detach(), own.grad, norm.weight.grad, norm

    parts = together(workers, part)
    for rank, (found, of_rows, _, norm) in enumerate(parts):
        torch.testing.assert_close(found, expected.detach()[rank::workers])
        assert whole.grad is not None
        torch.testing.assert_close(of_rows, whole.grad[rank::workers])
        torch.testing.assert_close(dict(norm.state_dict()), dict(usual.state_dict()))
    torch.testing.assert_close(sum(of_weight for _, _, of_weight, _ in parts), usual.weight.grad)


def test_a_cumulative_mean_is_followed_as_torch_does() -> None:
    rows = torch.randn(3, 6, 3, generator=seeded(), dtype=torch.float64)
    usual, own = made((6, 3), None), made((6, 3), None)
    for batch in rows:
        usual(batch)
        batch_norm(own, batch, lambda _: None)
    torch.testing.assert_close(dict(own.state_dict()), dict(usual.state_dict()))
