#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes convnet_50steps.safetensors beside itself: 50 steps of the ConvNet by PyTorch on the CPU, in FP32.

The images are noise with a bright bar, whose rows tell the class, so that the loss falls from 2.3 to near 0. Five epochs in
DistributedSampler's order (seed 0, one rank), batches of 32, Adam with lr 1e-3, weights from torch.manual_seed(0).
"""
import pathlib

import numpy
import torch

from safetensors_file import save

SAMPLES, BATCH, EPOCHS = 320, 32, 5


class ConvNet(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv_layers = torch.nn.Sequential(
            torch.nn.Conv2d(1, 32, 3), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
            torch.nn.Conv2d(32, 64, 3), torch.nn.ReLU(), torch.nn.MaxPool2d(2))
        self.fc_layers = torch.nn.Sequential(torch.nn.Linear(1600, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))

    def forward(self, x):
        return self.fc_layers(self.conv_layers(x).flatten(1))


def made_up_images():
    generator = numpy.random.RandomState(0)
    images = generator.randint(0, 192, (SAMPLES, 28, 28))
    labels = generator.randint(0, 10, SAMPLES)
    for image, label in zip(images, labels):
        image[2 * label + 4 : 2 * label + 6, 4:24] += 48
    return torch.from_numpy(images.astype(numpy.uint8)), torch.from_numpy(labels.astype(numpy.int64))


def train(images, labels, dtype):
    torch.manual_seed(0)
    model = ConvNet().to(dtype)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    sampler = torch.utils.data.DistributedSampler(range(SAMPLES), 1, 0, shuffle=True, seed=0)
    x = ((images.unsqueeze(1).float() / 255 - 0.5) / 0.5).to(dtype)
    losses = []
    for epoch in range(EPOCHS):
        sampler.set_epoch(epoch)
        order = list(sampler)
        for start in range(0, SAMPLES, BATCH):
            batch = order[start : start + BATCH]
            loss = torch.nn.functional.cross_entropy(model(x[batch]), labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return torch.tensor(losses, dtype=torch.float64)


if __name__ == "__main__":
    torch.set_num_threads(1)
    images, labels = made_up_images()
    losses = train(images, labels, torch.float32)
    difference = (losses - train(images, labels, torch.float64)).abs()
    print(f"FP32 against FP64: {difference[:20].max():.1e} in 20 steps, {difference.max():.1e} in {len(losses)}")
    save(pathlib.Path(__file__).parent / "convnet_50steps.safetensors", {"images_u8": images, "labels": labels, "losses": losses})
