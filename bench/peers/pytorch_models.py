"""The networks that benchmarks train, as PyTorch users write them."""
from torch import nn


def mlp():
    return nn.Sequential(nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10))


def lenet5():
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))


def vgg11_bn():
    layers, channels = [], 3
    for width in (64, "pool", 128, "pool", 256, 256, "pool", 512, 512, "pool", 512, 512, "pool"):
        if width == "pool":
            layers.append(nn.MaxPool2d(2))
            continue
        layers += [nn.Conv2d(channels, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True)]
        channels = width
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(512, 10))


class Block(nn.Module):
    """Two 3x3 convolutions and a shortcut."""

    def __init__(self, channels, width, stride):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width))
        self.shortcut = nn.Identity()
        if stride != 1 or channels != width:
            self.shortcut = nn.Sequential(nn.Conv2d(channels, width, 1, stride, bias=False), nn.BatchNorm2d(width))

    def forward(self, x):
        return nn.functional.relu(self.body(x) + self.shortcut(x), inplace=True)


def resnet18():
    layers, channels = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True)], 64
    for width, stride in ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1)):
        layers.append(Block(channels, width, stride))
        channels = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


def fine_tuned_resnet18(frozen):
    """For 224 x 224. The first `frozen` of its parts (the stem, eight blocks) are not trained and keep their statistics."""
    parts, channels = [nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True),
                                     nn.MaxPool2d(3, 2, 1))], 64
    for width, stride in ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1)):
        parts.append(Block(channels, width, stride))
        channels = width
    for part in parts[:frozen]:
        part.requires_grad_(False).eval()
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


class Bottleneck(nn.Module):
    """A 3x3 convolution between two 1x1 ones, the last four times as wide, and a shortcut."""

    def __init__(self, channels, width, stride):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width))
        self.shortcut = nn.Identity()
        if stride != 1 or channels != 4 * width:
            self.shortcut = nn.Sequential(nn.Conv2d(channels, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width))

    def forward(self, x):
        return nn.functional.relu(self.body(x) + self.shortcut(x), inplace=True)


def resnet50():
    layers, channels = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True),
                        nn.MaxPool2d(3, 2, 1)], 64
    for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for block in range(blocks):
            layers.append(Bottleneck(channels, width, stride if block == 0 else 1))
            channels = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))


class PaddedShortcut(nn.Module):
    """Every second pixel, with channels of zeros before and after, as in He et al. for CIFAR."""

    def forward(self, x):
        added = x.shape[1] // 2
        return nn.functional.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, added, added))


def resnet20():
    layers, channels = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(inplace=True)], 16
    for width, stride in ((16, 1), (16, 1), (16, 1), (32, 2), (32, 1), (32, 1), (64, 2), (64, 1), (64, 1)):
        layers.append(Block(channels, width, stride))
        if stride == 2:
            layers[-1].shortcut = PaddedShortcut()
        channels = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


class Reader(nn.Module):
    """Two recurrent layers of 256 units and a head on the last states."""

    def __init__(self, kind):
        super().__init__()
        self.rnn, self.head = kind(256, 256, num_layers=2, batch_first=True), nn.Linear(256, 10)

    def forward(self, x):
        return self.head(self.rnn(x)[0][:, -1])


MODELS = {  # the model, the batch size, the shape of one sample
    "mlp": (mlp, 128, (784,)),
    "lenet5": (lenet5, 64, (1, 28, 28)),
    "vgg11_bn": (vgg11_bn, 64, (3, 32, 32)),
    "resnet18": (resnet18, 64, (3, 32, 32)),
    "resnet20": (resnet20, 128, (3, 32, 32)),
    "resnet50": (resnet50, 16, (3, 224, 224)),
    "resnet18_all": (lambda: fine_tuned_resnet18(0), 32, (3, 224, 224)),
    "resnet18_end": (lambda: fine_tuned_resnet18(7), 32, (3, 224, 224)),
    "resnet18_head": (lambda: fine_tuned_resnet18(9), 32, (3, 224, 224)),
    "lstm": (lambda: Reader(nn.LSTM), 64, (100, 256)),
    "gru": (lambda: Reader(nn.GRU), 64, (100, 256)),
}
