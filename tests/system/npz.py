"""Arrays for NPZ archives, without NumPy."""
import struct


def npy(kind, shape, data):
    """The bytes of an array in NumPy's format; `kind` such as "<f4"."""
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data
