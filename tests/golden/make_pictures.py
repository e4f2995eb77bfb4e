#!/usr/bin/python3
"""Writes pictures.json: PNG files of all kinds, and what Pillow makes of them on a white ground.

Needs python3-pil.
"""
import io
import json
import pathlib
import random
import struct
import zlib

from PIL import Image

HEIGHT, WIDTH = 5, 7
GREY, RGB, PALETTE, GREY_ALPHA, RGBA = 0, 2, 3, 4, 6
CHANNELS = {GREY: 1, RGB: 3, PALETTE: 1, GREY_ALPHA: 2, RGBA: 4}
random.seed(1)


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(kind, bits, extra=(), most=None):
    """A file of random samples, each row without a filter; `extra` are chunks before the data."""
    rows = b""
    for _ in range(HEIGHT):
        samples = [random.randrange(most or 1 << bits) for _ in range(WIDTH * CHANNELS[kind])]
        if bits == 16:
            row = struct.pack(f">{len(samples)}H", *samples)
        else:
            text = "".join(f"{sample:0{bits}b}" for sample in samples)
            text += "0" * (-len(text) % 8)
            row = bytes(int(text[i : i + 8], 2) for i in range(0, len(text), 8))
        rows += b"\0" + row
    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, bits, kind, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header)
            + b"".join(chunk(name, data) for name, data in extra)
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def on_white(file):
    picture = Image.open(io.BytesIO(file))
    if picture.mode in ("I", "I;16"):  # Pillow would clip these at 255
        return Image.frombytes("L", picture.size, bytes(v >> 8 for v in picture.getdata()))
    if picture.mode in ("1", "L", "RGB", "P") and "transparency" not in picture.info:
        return picture.convert("L" if picture.mode in ("1", "L") else "RGB")
    picture = picture.convert("RGBA")
    ground = Image.new("RGB", picture.size, (255, 255, 255))
    ground.paste(picture, mask=picture.getchannel("A"))
    return ground


def gamma(value):
    return (b"gAMA", struct.pack(">I", value))


colours = bytes(random.randrange(256) for _ in range(3 * 16))
cases = {
    "grey of 1 bit": png(GREY, 1),
    "grey of 4 bits": png(GREY, 4),
    "grey": png(GREY, 8),
    "grey, gamma 1": png(GREY, 8, [gamma(100000)]),
    "grey of 16 bits": png(GREY, 16),
    "grey of 16 bits, gamma 1/2.2": png(GREY, 16, [gamma(45455)]),
    "colour": png(RGB, 8),
    "colour, gamma 1": png(RGB, 8, [gamma(100000)]),
    "colour, gamma 1/4": png(RGB, 8, [gamma(25000)]),
    "colour of 16 bits": png(RGB, 16),
    "palette": png(PALETTE, 4, [(b"PLTE", colours)]),
    "palette, gamma 1": png(PALETTE, 8, [gamma(100000), (b"PLTE", colours)], most=16),
    "palette with alpha": png(PALETTE, 4, [(b"PLTE", colours), (b"tRNS", bytes(range(0, 256, 16)))]),
    "grey with alpha": png(GREY_ALPHA, 8),
    "colour with alpha": png(RGBA, 8),
    "colour with alpha, gamma 1": png(RGBA, 8, [gamma(100000)]),
    "colour with alpha of 16 bits": png(RGBA, 16),
    "grey with one transparent": png(GREY, 8, [(b"tRNS", b"\0\3")], most=5),
}

golden = []
for name, file in cases.items():
    picture = on_white(file)
    golden.append({
        "name": name,
        "file": file.hex(),
        "height": HEIGHT,
        "width": WIDTH,
        "grey": picture.convert("L").tobytes().hex(),
        "colour": picture.convert("RGB").tobytes().hex(),
    })
pathlib.Path(__file__).with_name("pictures.json").write_text(json.dumps(golden, indent=1) + "\n")
