"""pictures.py FILE COUNT CHANNELS HEIGHT WIDTH: random pictures of ten classes as an NPZ archive."""
import math
import os
import random
import struct
import sys
import zipfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from npz import npy

shape = tuple(int(extent) for extent in sys.argv[2:])
count = shape[0]
rng = random.Random(7)
labels = [i % 10 for i in range(count)]
with zipfile.ZipFile(sys.argv[1], "w") as archive:
    archive.writestr("x.npy", npy("|u1", shape, rng.randbytes(math.prod(shape))))
    archive.writestr("y.npy", npy("<i4", (count,), struct.pack(f"<{count}i", *labels)))
