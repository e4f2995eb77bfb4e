#!/usr/bin/python3
"""`bench/run transfer agreement`: whether networks of torchvision compute the same here. torchvision makes each of them with random
weights and random statistics of its norms, and writes its file; both compute four pictures from it. Prints the distance of the
outputs relative to their length."""
import argparse
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from inference import ROOT, set_up_peers  # noqa: E402

# Ours, torchvision's, and the name of its last layer here.
NETWORKS = [("resnet18", "resnet18", "fc"), ("resnet50", "resnet50", "fc"), ("mobilenet_v2", "mobilenet_v2", "classifier"),
            ("vgg16", "vgg16", "classifier"), ("vgg19", "vgg19", "classifier"), ("vit_base", "vit_b_16", "head")]
MAKE = """
import os, sys, numpy, torch, torchvision
from PIL import Image
torch.manual_seed(0)
random = numpy.random.default_rng(0)
pixels = []
for name in ("a/0", "a/1", "b/0", "b/1"):
    os.makedirs(os.path.dirname(f"pictures/{name}"), exist_ok=True)
    picture = Image.fromarray(random.integers(0, 256, (28, 28, 3), dtype=numpy.uint8)).resize((224, 224), Image.BICUBIC)
    picture.save(f"pictures/{name}.png")
    pixels.append(numpy.asarray(picture).astype(numpy.float32) / 255)
x = torch.tensor(numpy.stack(pixels)).permute(0, 3, 1, 2)
x = (x - torch.tensor([0.485, 0.456, 0.406]).view(1, 3, 1, 1)) / torch.tensor([0.229, 0.224, 0.225]).view(1, 3, 1, 1)
for name in sys.argv[1:]:
    network = getattr(torchvision.models, name)(weights=None)
    for key, values in network.named_buffers():
        if key.endswith("running_mean"): values.normal_(0, 0.1)
        if key.endswith("running_var"): values.uniform_(0.5, 1.5)
    for key, values in network.named_parameters():
        values.data.add_(torch.randn_like(values) * (0.1 if values.ndim == 1 else 0.001))
    network.eval()
    torch.save(network.state_dict(), f"{name}.pth")
    with torch.no_grad():
        numpy.save(f"{name}.npy", network(x).numpy())
"""
COMPARE = """
import sys, numpy
for name in sys.argv[1:]:
    ours = numpy.load(f"{name}.npz")
    ours = numpy.concatenate([ours[key] for key in ours.files if key.startswith("x_")])
    theirs = numpy.load(f"{name}.npy")
    # Samples are divided at random into those for training and for testing: each one has a nearest.
    far = max(min(numpy.linalg.norm(a - b) for a in ours) / numpy.linalg.norm(b) for b in theirs)
    print(f"{name:14} {far:.1e}")
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--artel", default=os.path.join(ROOT, "build/release/artel"))
    arguments = parser.parse_args()
    python = set_up_peers()
    theirs = [name for _, name, _ in NETWORKS]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([python, "-c", MAKE, *theirs], check=True, cwd=folder)
        for ours, name, layer in NETWORKS:
            subprocess.run([os.path.abspath(arguments.artel), "features", ours, "pictures", "--weights", f"{name}.pth", "--layer", layer,
                            "-o", f"{name}.npz"], check=True, cwd=folder, stdout=subprocess.DEVNULL)
        subprocess.run([python, "-c", COMPARE, *theirs], check=True, cwd=folder)


main()
