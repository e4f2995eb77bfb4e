"""What the runs of the fault tests train."""
import random
import struct
import zipfile
from pathlib import Path

CLUSTER = "\n[cluster]\nlanes = 8\nthreads = 1\n"
NETWORKS = {
    "table": """
[data]
set = "csv"
path = "data.csv"
test_fraction = 0.25
[model]
layers = ["dense 64", "batch_norm", "relu", "dropout 0.1", "dense 64", "relu", "dense 2"]
[train]
batch_size = 40
optimizer = { name = "adam", lr = 0.001 }
""",
    "deep": """
[data]
set = "csv"
path = "data.csv"
test_fraction = 0.25
[model]
layers = [""" + '"dense 256", "relu", ' * 16 + """"dense 2"]
[train]
batch_size = 150
optimizer = { name = "sgd", lr = 0.01 }
""",
    "cnn": """
[data]
set = "npz"
path = "images.npz"
test_fraction = 0.25
augment = ["flip"]
[model]
layers = ["conv 8 3x3", "batch_norm", "relu", "max_pool 2", "conv 16 3x3", "relu", "flatten", "dense 2"]
[train]
batch_size = 32
optimizer = { name = "sgd", lr = 0.05, momentum = 0.9 }
""",
    "gpt": """
[data]
set = "text"
path = "text.txt"
context = 16
[model]
name = "gpt2"
depth = 2
heads = 2
width = 32
positions = 16
dropout = 0.1
[train]
batch_size = 16
clip_norm = 1
optimizer = { name = "adamw", lr = 1e-3 }
""",
}


def write_data():
    rng = random.Random(7)
    rows = []
    for _ in range(400):
        a, b, c = rng.random() - 0.5, rng.random() - 0.5, rng.random()
        rows.append(f"{a:.4f},{b:.4f},{c:.4f},{'yes' if a + b > 0 else 'no'}")
    Path("data.csv").write_text("a,b,c,kind\n" + "\n".join(rows) + "\n")
    labels = [rng.randrange(2) for _ in range(256)]
    images = b"".join(bytes(rng.randrange(100) + 100 * label for _ in range(64)) for label in labels)
    with zipfile.ZipFile("images.npz", "w") as archive:
        archive.writestr("x.npy", npy("|u1", "256, 1, 8, 8", images))
        archive.writestr("y.npy", npy("<i8", "256,", struct.pack("<256q", *labels)))
    words = ["one", "two", "three", "five", "eight"]
    Path("text.txt").write_text(" ".join(rng.choice(words) for _ in range(1500)))


def npy(kind, shape, data):
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': ({shape}), }}"
    header += " " * (63 - (len(header) + 10) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data
