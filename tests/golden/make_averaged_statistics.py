#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes averaged_statistics.safetensors beside itself: what torch.optim.swa_utils.update_bn makes of the statistics of batch
normalization on the CPU, in FP32, in a world of one rank and of two, whose statistics are averaged."""
import pathlib

import torch

from safetensors_file import save


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv0, self.bn0 = torch.nn.Conv2d(2, 4, 3, bias=False), torch.nn.BatchNorm2d(4)
        self.conv1, self.bn1 = torch.nn.Conv2d(4, 5, 3, bias=False), torch.nn.BatchNorm2d(5, momentum=0.4)
        self.fc = torch.nn.Linear(5, 3)

    def forward(self, x):
        x = torch.nn.functional.relu(self.bn0(self.conv0(x)))
        return self.fc(self.bn1(self.conv1(x)).mean((2, 3)))


def updated(model, images, world, rank, size=5):
    sampler = torch.utils.data.DistributedSampler(images, world, rank, shuffle=True, seed=0)
    batches = len(images) // world // size
    order = torch.tensor(list(sampler)[: batches * size])
    torch.optim.swa_utils.update_bn([images[batch] for batch in order.split(size)], model)
    return {name: value.clone() for name, value in model.named_buffers() if "num_batches" not in name}


if __name__ == "__main__":
    torch.manual_seed(0)
    model = Network()
    pixels = torch.randint(0, 256, (13, 2, 6, 6), dtype=torch.uint8)
    images = (pixels / 255.0 - 0.5) / 0.5
    tensors = {"images_u8": pixels.permute(0, 2, 3, 1).contiguous()}
    tensors |= {f"weight.{name}": weight for name, weight in model.named_parameters()}
    for world in (1, 2):
        of_ranks = [updated(model, images, world, rank) for rank in range(world)]
        for name in of_ranks[0]:
            tensors[f"world_{world}.{name}"] = sum(each[name] for each in of_ranks) / world
    save(pathlib.Path(__file__).parent / "averaged_statistics.safetensors", tensors)
