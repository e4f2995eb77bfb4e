#!/usr/bin/python3
"""`bench/run train`: networks of images and numbers, trained by Artel and by its peers."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from training import Case, main  # noqa: E402

main("bench/run train", [Case("mlp"), Case("lenet5", images=True), Case("vgg11_bn", images=True),
                         Case("resnet18", images=True), Case("resnet20", images=True)])
