"""pictures.py FILE: small grey pictures of three classes as an NPZ archive; some labels are wrong, so that mistakes are certain."""
import os
import random
import struct
import sys
import zipfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from npz import npy


def samples(count, rng):
    pixels, labels = bytearray(), []
    for _ in range(count):
        kind = rng.randrange(3)
        for y in range(12):
            for x in range(12):
                inside = 1 + 3 * kind <= x < 5 + 3 * kind and 3 <= y < 9
                pixels.append(rng.randrange(180, 256) if inside else rng.randrange(60))
        labels.append(rng.randrange(3) if rng.random() < 0.1 else kind)
    return npy("|u1", (count, 12, 12), bytes(pixels)), npy("<i4", (count,), struct.pack(f"<{count}i", *labels))


rng = random.Random(7)
with zipfile.ZipFile(sys.argv[1], "w") as archive:
    for part, count in (("train", 240), ("test", 120)):
        for name, data in zip("xy", samples(count, rng)):
            archive.writestr(f"{name}_{part}.npy", data)
