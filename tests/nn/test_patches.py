import torch

from transpl.nn.patches import patch_mask, to_patches


def test_patches_are_consecutive_and_the_tail_is_dropped():
    x = torch.arange(2 * 1 * 7).float().reshape(2, 1, 7)
    patches = to_patches(x, 3)
    assert patches.shape == (2, 1, 2, 3)
    assert patches[0, 0].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert patches[1, 0].tolist() == [[7, 8, 9], [10, 11, 12]]


def test_only_patches_wholly_inside_a_window_are_real():
    mask = patch_mask(torch.tensor([8, 7, 3]), 4, 2)
    assert mask.tolist() == [[True, True], [True, False], [False, False]]
