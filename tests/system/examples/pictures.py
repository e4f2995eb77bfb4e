"""pictures.py FILE CHANNELS HEIGHT WIDTH: 48 random pictures of ten classes as an NPZ archive."""
import math
import os
import random
import struct
import sys
import zipfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from npz import npy

COUNT = 48
shape = (COUNT, *(int(extent) for extent in sys.argv[2:]))
rng = random.Random(7)
labels = [i % 10 for i in range(COUNT)]
with zipfile.ZipFile(sys.argv[1], "w") as archive:
    archive.writestr("x.npy", npy("|u1", shape, rng.randbytes(math.prod(shape))))
    archive.writestr("y.npy", npy("<i4", (COUNT,), struct.pack(f"<{COUNT}i", *labels)))
