import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from dccm.networks import product as module
from dccm.networks.product import product
from tests.support import seeded


@pytest.mark.parametrize(
    ("count", "columns", "convolved"), [(256, 300, 1), (997, 256, 1), (1000, 256, 1), (255, 300, 0)]
)
def test_product_is_what_a_linear_layer_says_however_it_is_computed(
    count: int, columns: int, convolved: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, weight = torch.randn(count, columns, generator=seeded()), torch.randn(3, columns, generator=seeded(1))
    bias = torch.randn(3, generator=seeded(2))
    shapes = []

    def noted(images: Tensor, kernels: Tensor, bias: Tensor | None) -> Tensor:
        shapes.append(images.shape)
        return torch.conv2d(images, kernels, bias)

    monkeypatch.setattr(module, "convolves_faster", lambda: True)
    monkeypatch.setattr(F, "conv2d", noted)
    torch.testing.assert_close(product(rows, weight, bias), rows @ weight.T + bias, rtol=0, atol=1e-4)
    assert len(shapes) == convolved
    assert all(shape[0] >= 16 for shape in shapes)


def test_product_of_double_precision_is_left_to_the_linear_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, weight = torch.randn(300, 300, generator=seeded()).double(), torch.eye(300).double()
    monkeypatch.setattr(module, "convolves_faster", lambda: True)
    monkeypatch.delattr(F, "conv2d")
    assert product(rows, weight).equal(rows)
