"""The optimiser is PyTorch's fused Adam, without its compiler."""

from __future__ import annotations

import copy
import subprocess
import sys

import pytest
import torch
from torch import nn

from polariscope.models.adam import FusedAdam


@pytest.mark.parametrize("amsgrad", [False, True])
def test_steps_and_state_are_pytorchs_to_the_bit(amsgrad):
    ours = nn.Sequential(nn.Linear(5, 7), nn.Linear(7, 3))
    theirs = copy.deepcopy(ours)
    x = torch.randn(11, 5, generator=torch.Generator().manual_seed(0))
    made = FusedAdam(ours.parameters(), 1e-2, (0.5, 0.9), eps=1e-7, amsgrad=amsgrad)
    reference = torch.optim.Adam(
        theirs.parameters(), lr=1e-2, betas=(0.5, 0.9), eps=1e-7, amsgrad=amsgrad, fused=True
    )
    for number in range(6):
        for network, optimiser in ((ours, made), (theirs, reference)):
            optimiser.zero_grad()
            network(x).square().sum().backward()
            optimiser.step()
        if number == 2:  # a state goes from one to the other
            made.load_state_dict(copy.deepcopy(reference.state_dict()))
    for mine, expected in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert torch.equal(mine, expected)
    assert made.state_dict()["param_groups"] == reference.state_dict()["param_groups"]
    for number, slots in made.state_dict()["state"].items():
        assert all(
            torch.equal(slots[name], value)
            for name, value in reference.state[reference.param_groups[0]["params"][number]].items()
        )


def test_training_does_not_import_the_compiler():
    program = (
        "import sys, numpy as np, polariscope as ps\n"
        "data = ps.from_arrays(np.random.default_rng(0).normal(size=(64, 4)))\n"
        "ps.train(data, n_latents=2, steps=2, batch_size=8)\n"
        "print('torch._dynamo' in sys.modules)\n"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.split()[-1] == "False"
