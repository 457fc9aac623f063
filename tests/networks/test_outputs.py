import torch

from dccm.arrays import ImageShape
from dccm.networks.base import NetworkConfig
from dccm.networks.head import VectorHead
from dccm.networks.outputs import begin_outputs, taken_over
from dccm.networks.paper import PaperEncoder


def test_weights_of_fewer_and_of_more_outputs_are_taken_over_where_both_have_them() -> None:
    trained = {"output.weight": torch.ones(3, 2), "output.bias": torch.ones(3), "steps": torch.tensor(4)}
    for outputs in (2, 5):
        own = {
            "output.weight": torch.zeros(outputs, 2),
            "output.bias": torch.zeros(outputs),
            "steps": torch.tensor(0),
        }
        taken = taken_over(own, trained)
        both = min(3, outputs)
        assert taken["output.weight"].sum() == 2 * both
        assert taken["output.bias"].tolist() == [1.0] * both + [0.0] * (outputs - both)
        assert taken["steps"] == 4
        assert not own["output.bias"].any()


def test_an_output_that_begins_is_largest_where_its_centre_lies_and_others_stay() -> None:
    encoder = PaperEncoder(NetworkConfig(logit_norm="none"), ImageShape(1, 8, 8), 3)
    before = encoder.output.weight.detach().clone()
    middle = torch.zeros(encoder.feature_size)
    centre = torch.eye(encoder.feature_size)[5] * 20
    begin_outputs(encoder, {2: centre}, middle, [0, 1], torch.tensor([5, 5, 5]))
    assert torch.equal(encoder.output.weight[:2], before[:2])
    assert int(encoder.output(centre[None]).argmax()) == 2
    torch.testing.assert_close(encoder.output.weight[2].norm(), before[:2].norm(dim=1).mean())
    # In the middle of all images it is as likely as the others are.
    logits = encoder.output(middle[None])[0]
    torch.testing.assert_close(logits[2], logits[:2].mean())


def test_a_norm_treats_new_outputs_like_others_in_the_mean_and_expects_their_sizes() -> None:
    head = VectorHead(8, 3, "estimated")
    state = head.state_dict()  # The weights themselves, by name.
    state["norm.norm.weight"].copy_(torch.tensor([1.0, 3.0, 9.0]))
    begin_outputs(head, {2: torch.ones(8)}, torch.zeros(8), [0, 1], torch.tensor([10, 20, 30]))
    assert state["norm.norm.weight"].tolist() == [1.0, 3.0, 2.0]
    torch.testing.assert_close(state["norm.shares"], torch.tensor([1.0, 2.0, 3.0]) / 6)


def test_where_no_cluster_changed_nothing_begins() -> None:
    head = VectorHead(8, 3)
    before = {name: value.clone() for name, value in head.state_dict().items()}
    begin_outputs(head, {}, torch.zeros(8), [0, 1, 2], torch.tensor([1, 2, 3]))
    assert all(torch.equal(value, before[name]) for name, value in head.state_dict().items())
