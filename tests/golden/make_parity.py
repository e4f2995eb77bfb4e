#!/usr/bin/env python3
"""Writes parity_*.safetensors: ten training steps of small networks by PyTorch, for
tests/unit/train/parity_test.cc. Each file holds the weights before ("initial.") and after
("final."), one batch "x", "y", the first "logits" and the ten "losses". Computed in double precision, so that the
files are the truth and not another rounding of it.

Run: python3 tests/golden/make_parity.py   (Debian: python3-torch)
"""
import json
import pathlib
import struct

import torch
from torch import nn
from torch.nn import functional as F

STEPS, RATE, MOMENTUM = 10, 0.02, 0.9


def mlp(inputs, hidden, classes):
    widths = [inputs, *hidden]
    layers = []
    for before, after in zip(widths, widths[1:]):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(widths[-1], classes))


class LeNet(nn.Module):
    def __init__(self, features, classes):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 6, 5, padding=2), nn.Conv2d(6, 16, 5)
        self.fc1, self.fc2 = nn.Linear(features, 120), nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2).flatten(1)
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))


class Vgg11(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        layers, before = [], 3
        for block, convolutions in enumerate([1, 1, 2, 2, 2]):
            channels = width * 2 ** min(block, 3)
            for _ in range(convolutions):
                layers += [nn.Conv2d(before, channels, 3, padding=1, bias=False),
                           nn.BatchNorm2d(channels), nn.ReLU()]
                before = channels
            layers.append(nn.MaxPool2d(2))
        self.features, self.classifier = nn.Sequential(*layers), nn.Linear(before, classes)

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


class Block(nn.Module):
    def __init__(self, before, channels, stride, projection):
        super().__init__()
        self.conv1 = nn.Conv2d(before, channels, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.grows = stride != 1
        if self.grows and projection:
            self.downsample = nn.Sequential(nn.Conv2d(before, channels, 1, stride, bias=False),
                                            nn.BatchNorm2d(channels))

    def shortcut(self, x):
        if not self.grows:
            return x
        if hasattr(self, "downsample"):
            return self.downsample(x)
        missing = self.conv2.out_channels - x.shape[1]
        return F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, missing // 2, missing - missing // 2))

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + self.shortcut(x))


class ResNet(nn.Module):
    def __init__(self, blocks, width, classes, projection, head):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        before = width
        for stage, count in enumerate(blocks):
            channels = width * 2**stage
            layers = []
            for i in range(count):
                layers.append(Block(before, channels, 2 if i == 0 and stage > 0 else 1, projection))
                before = channels
            setattr(self, f"layer{stage + 1}", nn.Sequential(*layers))
        self.stages, self.head = len(blocks), head
        setattr(self, head, nn.Linear(before, classes))

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        for stage in range(self.stages):
            x = getattr(self, f"layer{stage + 1}")(x)
        return getattr(self, self.head)(x.mean((2, 3)))


class Reader(nn.Module):
    """A recurrent network and a head: on every position, or on the last states. Whole numbers are
    tokens, padded with 0."""

    def __init__(self, kind, width, units, classes, last, tokens=0, **options):
        super().__init__()
        if tokens:
            self.embedding = nn.Embedding(tokens, width)
        self.rnn = kind(width, units, batch_first=True, **options)
        self.head = nn.Linear(units * (2 if self.rnn.bidirectional else 1), classes)
        self.last = last

    def forward(self, x):
        if not hasattr(self, "embedding"):
            y, states = self.rnn(x)
        else:
            packed = nn.utils.rnn.pack_padded_sequence(
                self.embedding(x), (x != 0).sum(1), batch_first=True, enforce_sorted=False)
            y, states = self.rnn(packed)
        if not self.last:
            return self.head(y)
        states = states[0] if isinstance(states, tuple) else states
        return self.head(torch.cat([states[-2], states[-1]], 1) if self.rnn.bidirectional else states[-1])


def padded_texts(batch, length, tokens, classes):
    def sample():
        x = torch.randint(1, tokens, (batch, length))
        for row in range(batch):
            x[row, length - row % length:] = 0
        return x, torch.randint(0, classes, (batch,))
    return sample


def sequences(batch, length, width, classes, each):
    return lambda: (torch.randn(batch, length, width),
                    torch.randint(0, classes, (batch, length) if each else (batch,)))


def weights(model, prefix):
    return {f"{prefix}.{name}": value.float().clone()
            for name, value in model.state_dict().items() if "num_batches" not in name}


def write_safetensors(path, tensors):
    header, blob = {}, b""
    for name, tensor in tensors.items():
        data = tensor.numpy().tobytes()
        header[name] = {"dtype": {torch.float32: "F32", torch.int32: "I32"}[tensor.dtype],
                        "shape": list(tensor.shape),
                        "data_offsets": [len(blob), len(blob) + len(data)]}
        blob += data
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + blob)


def images(batch, shape, classes=10):
    return lambda: (torch.randn(batch, *shape), torch.randint(0, classes, (batch,)))


def make(name, build, sample):
    torch.manual_seed(sum(map(ord, name)))
    model = build()
    x, y = sample()
    tensors = {"x": x if x.is_floating_point() else x.int(), "y": y.int(), **weights(model, "initial")}
    model = model.double()
    if x.is_floating_point():
        x = x.double()
    optimizer = torch.optim.SGD(model.parameters(), RATE, momentum=MOMENTUM)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        logits = model(x)
        tensors.setdefault("logits", logits.detach().float())
        loss = F.cross_entropy(logits.flatten(0, -2), y.flatten())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    tensors |= {"losses": torch.tensor(losses), **weights(model, "final")}
    path = pathlib.Path(__file__).parent / f"parity_{name}.safetensors"
    write_safetensors(path, tensors)
    print(f"{path.name}: {path.stat().st_size} bytes, losses {losses[0]:.5f} .. {losses[-1]:.5f}")


if __name__ == "__main__":
    make("mlp", lambda: mlp(64, [48, 32], 10), images(8, (64,)))
    make("lenet5", lambda: LeNet(144, 10), images(8, (1, 20, 20)))
    make("vgg11_bn", lambda: Vgg11(3, 10), images(6, (3, 32, 32)))
    make("resnet18", lambda: ResNet([2, 2, 2, 2], 3, 10, True, "fc"), images(8, (3, 16, 16)))
    make("resnet8", lambda: ResNet([1, 1, 1], 8, 10, False, "linear"), images(6, (3, 16, 16)))
    make("lstm", lambda: Reader(nn.LSTM, 5, 7, 3, True, num_layers=2, bidirectional=True),
         sequences(6, 9, 5, 3, False))
    make("gru", lambda: Reader(nn.GRU, 5, 17, 3, False, num_layers=2), sequences(4, 8, 5, 3, True))
    make("lstm_padded", lambda: Reader(nn.LSTM, 6, 8, 4, True, 11, bidirectional=True),
         padded_texts(7, 6, 11, 4))
    make("gru_padded", lambda: Reader(nn.GRU, 6, 8, 4, True, 11, num_layers=2, bias=False),
         padded_texts(7, 6, 11, 4))
