"""events.py FOLDER EXPRESSION: reads the event files of a run, checks their frames, and asks whether an expression holds in
which `scalars`, `histograms`, `images` and `texts` are dictionaries of (step, value) by name."""
import glob
import struct
import sys


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def check(data, masked):
    turned = (masked - 0xA282EAD8) & 0xFFFFFFFF
    assert (turned >> 17 | turned << 15) & 0xFFFFFFFF == crc32c(data), "a wrong checksum"


def records(data):
    at = 0
    while at < len(data):
        length, crc = struct.unpack_from("<QI", data, at)
        check(data[at:at + 8], crc)
        yield data[at + 12:at + 12 + length]
        check(data[at + 12:at + 12 + length], struct.unpack_from("<I", data, at + 12 + length)[0])
        at += 16 + length


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


def fields(data):
    """The fields of a protocol-buffer message: {number: [values]}."""
    found, at = {}, 0
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 0:
            value, at = varint(data, at)
        else:
            size = {1: 8, 5: 4}.get(tag & 7)
            if size is None:
                size, at = varint(data, at)
            value, at = data[at:at + size], at + size
        found.setdefault(tag >> 3, []).append(value)
    return found


scalars, histograms, images, texts = {}, {}, {}, {}


def add(step, value):
    name = value[1][0].decode()
    if 2 in value:
        scalars.setdefault(name, []).append((step, struct.unpack("<f", value[2][0])[0]))
    elif 4 in value:
        image = fields(value[4][0])
        assert image[4][0].startswith(b"\x89PNG") and struct.unpack(">II", image[4][0][16:24]) == (image[2][0], image[1][0])
        images.setdefault(name, []).append((step, (image[2][0], image[1][0])))
    elif 5 in value:
        histogram = fields(value[5][0])
        counts = struct.unpack(f"<{len(histogram[7][0]) // 8}d", histogram[7][0])
        assert sum(counts) == struct.unpack("<d", histogram[3][0])[0] and len(histogram[6][0]) == len(histogram[7][0])
        histograms.setdefault(name, []).append((step, sum(counts)))
    else:
        assert fields(fields(value[9][0])[1][0])[1][0] == b"text"
        texts.setdefault(name, []).append((step, fields(value[8][0])[8][0].decode()))


for file in sorted(glob.glob(sys.argv[1] + "/events.out.tfevents.*")):
    with open(file, "rb") as stream:
        for record in records(stream.read()):
            event = fields(record)
            for value in fields(event[5][0]).get(1, []) if 5 in event else []:
                add(event.get(2, [0])[0], fields(value))
if not eval(f"({sys.argv[2]})"):
    sys.exit(f"not so: {sys.argv[2]}\n{list(scalars)}\n{histograms}\n{images}\n{texts}")
