"""files.py ARTEL [CASE]: gives files made to do harm to the program. Each must be refused: with an exit code and one line that names the
file, not by a signal, and without taking more memory than a small multiple of the file's size."""
import json
import os
import struct
import subprocess
import sys
import tempfile
import time
import zlib

ARTEL = os.path.abspath(sys.argv[1])
ROOM = 48 << 20  # of the program itself, beyond what it takes to say its version
TIMES = 16       # the size of the file
SECONDS = 20     # far more than any of them takes


def write(path, *parts):
    with open(path, "wb") as file:
        for part in parts:
            file.write(part.encode() if isinstance(part, str) else part)
    return path


def zip_entry(name, content, size, crc, method=8):
    """A local header with its content, and a line of the directory that claims `size` and `crc`."""
    common = struct.pack("<HHHHHIIIHH", 20, 0, method, 0, 33, crc, len(content), min(size, 0xFFFFFFFF), len(name), 0)
    return b"PK\3\4" + common + name + content, lambda offset: (
        b"PK\1\2" + struct.pack("<H", 20) + common + struct.pack("<HHHII", 0, 0, 0, 0, offset) + name)


def zip_of(entries):
    """entries: (name, compressed content, size, crc, method)."""
    body, directory = bytearray(), bytearray()
    for entry in entries:
        local, line = zip_entry(*entry)
        directory += line(len(body))
        body += local
    return bytes(body + directory) + b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, len(entries), len(entries), len(directory), len(body), 0)


def deflated(size, begin=b""):
    """Zeros, compressed a thousandfold, and their checksum."""
    packer, crc, done = zlib.compressobj(6, zlib.DEFLATED, -15), zlib.crc32(begin), len(begin)
    out = packer.compress(begin)
    zeros = bytes(1 << 20)
    while done < size:
        piece = zeros[: min(len(zeros), size - done)]
        out, crc, done = out + packer.compress(piece), zlib.crc32(piece, crc), done + len(piece)
    return out + packer.flush(), crc


def npy_header(shape):
    text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text


def verify(path):
    return [ARTEL, "verify", path, path]


# ---- archives

def pt_that_inflates():
    """18 MB of entries that inflate to 18 GB, as storages of a PyTorch file."""
    packed, crc = deflated(1 << 26)
    entries = [(b"a/data.pkl", b"\x80\2}.", 4, zlib.crc32(b"\x80\2}."), 0)]
    entries += [(b"a/data/%d" % i, packed, 1 << 26, crc, 8) for i in range(288)]
    return verify(write("bomb.pt", zip_of(entries)))


def npz_that_inflates():
    packed, crc = deflated(1 << 26)
    return verify(write("bomb.npz", zip_of([(b"a%d.npy" % i, packed, 1 << 26, crc, 8) for i in range(288)])))


def npz_that_says_terabytes():
    packed, crc = deflated(1 << 16)
    return verify(write("lies.npz", zip_of([(b"a%d.npy" % i, packed, 0xFFFFFFFE, crc, 8) for i in range(300)])))


def npz_with_one_large_array():
    """Within what archives may inflate to, but the shape does not fit."""
    begin = npy_header("(7,)")
    packed, crc = deflated(64 << 20, begin)
    return verify(write("large.npz", zip_of([(b"a.npy", packed, 64 << 20, crc, 8)])))


def overlapping_entries():
    """Every line of the directory names the same content."""
    packed, crc = deflated(1 << 20)
    local, line = zip_entry(b"a0.npy", packed, 1 << 20, crc)
    lines = b"".join(zip_entry(b"a%d.npy" % i, packed, 1 << 20, crc)[1](0) for i in range(10000))
    end = b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, 10000, 10000, len(lines), len(local), 0)
    return verify(write("overlap.npz", local, lines, end))


def wrong_checksum():
    content = npy_header("(3,)") + bytes(12)
    return verify(write("changed.npz", zip_of([(b"a.npy", content, len(content), 12345, 0)])))


def pickle_with_a_key_a_million_times():
    """One key of 10 kB, kept once and used again and again."""
    program = b"\x80\2}q\0(X" + struct.pack("<I", 10000) + b"k" * 10000 + b"q\1K\1" + b"h\1K\1" * 1_000_000 + b"u."
    return verify(write("keys.pt", zip_of([(b"a/data.pkl", program, len(program), zlib.crc32(program), 0)])))


def pickle_of_lists_of_lists():
    program = b"\x80\2" + b"]" * 500_000 + b"a" * 499_999 + b"."
    return verify(write("lists.pt", zip_of([(b"a/data.pkl", program, len(program), zlib.crc32(program), 0)])))


# ---- text that nests

def safetensors(header, data=b""):
    return struct.pack("<Q", len(header)) + header + data


def safetensors_shape_of_brackets():
    shape = b"[" * 80_000 + b"]" * 80_000
    return verify(write("deep.safetensors", safetensors(b'{"w":{"dtype":"F32","shape":' + shape + b',"data_offsets":[0,4]}}', bytes(4))))


def safetensors_header_nested_deeply():
    return verify(write("deeper.safetensors", safetensors(b'{"a":' * 500_000 + b"1" + b"}" * 500_000)))


def safetensors_of_empty_lists():
    """Small text that takes much memory as values."""
    return verify(write("lists.safetensors", safetensors(b'{"w":[' + b"[]," * 3_000_000 + b"[]]}")))


def safetensors_of_names():
    names = b",".join(b'"%x":{}' % i for i in range(1_000_000))
    return verify(write("names.safetensors", safetensors(b"{" + names + b"}")))


def toml_key_of_many_parts():
    write("parts.toml", "a" + ".a" * 200_000 + " = 1\n")
    return [ARTEL, "train", "parts.toml"]


def toml_key_behind_a_string():
    write("hidden.toml", 'x = { y = "\\"", ' + "a" + ".a" * 200_000 + " = 1 }\n")
    return [ARTEL, "train", "hidden.toml"]


def toml_arrays_nested_deeply():
    write("nested.toml", "x = " + "[" * 200_000 + "]" * 200_000 + "\n")
    return [ARTEL, "train", "nested.toml"]


def table(folder, text):
    write(folder + ".csv", text)
    write(folder + ".toml", f'[data]\nset = "csv"\npath = "{folder}.csv"\n[model]\nlayers = ["dense 2"]\n[train]\nbatch_size = 10\nsteps = 3\n'
          "[cluster]\nthreads = 1\n")
    return [ARTEL, "train", folder + ".toml", "--out", folder]


def checkpoint_with_a_nested_seed():
    subprocess.run(table("good", "a,b,kind\n" + "".join(f"{i % 7},{i % 5},{'xy'[i % 2]}\n" for i in range(100))), check=True, capture_output=True)
    folder = os.path.join("good", "checkpoints")
    manifest = os.path.join(folder, sorted(os.listdir(folder))[0], "checkpoint.json")
    with open(manifest) as file:
        text = json.load(file)
    text.pop("crc32", None)
    text["state"]["seed"] = "SEED"
    write(manifest, json.dumps(text).replace('"SEED"', "[" * 500_000 + "]" * 500_000))
    return verify("good")


# ---- tables and pictures

def columns_that_explode():
    """2,000 columns of 500 names each: a million inputs for each of 1,000 rows, if they were encoded."""
    rows = [",".join(f"c{i}" for i in range(2000)) + ",kind\n"]
    for row in range(1000):
        rows.append(",".join(f"v{(row * 7 + i) % 500}" for i in range(2000)) + f",{'ab'[row % 2]}\n")
    return table("explodes", "".join(rows))


def png_of_a_million_by_a_million():
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    picture = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 1_000_000, 1_000_000, 8, 2, 0, 0, 0))
    picture += chunk(b"IDAT", zlib.compress(bytes(10 << 20), 9)) + chunk(b"IEND", b"")
    for kind in "ab":
        os.makedirs(f"pictures/{kind}", exist_ok=True)
        for i in range(4):
            write(f"pictures/{kind}/{i}.png", picture)
    write("pictures.toml", '[data]\nset = "folder"\npath = "pictures"\nimage_size = 8\n[model]\nlayers = ["flatten", "dense 2"]\n[train]\nbatch_size = 2\n')
    return [ARTEL, "train", "pictures.toml", "--out", "pictures-run"]


CASES = [pt_that_inflates, npz_that_inflates, npz_that_says_terabytes, npz_with_one_large_array, overlapping_entries, wrong_checksum,
         pickle_with_a_key_a_million_times, pickle_of_lists_of_lists, safetensors_shape_of_brackets, safetensors_header_nested_deeply,
         safetensors_of_empty_lists, safetensors_of_names, toml_key_of_many_parts, toml_key_behind_a_string, toml_arrays_nested_deeply,
         checkpoint_with_a_nested_seed, columns_that_explode, png_of_a_million_by_a_million]


def made(case):
    """The command for a case, whose files another process makes: the memory of this one would count as the program's."""
    reader, writer = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            os.write(writer, json.dumps(case()).encode())
            os._exit(0)
        finally:
            os._exit(1)
    os.close(writer)
    with os.fdopen(reader) as file:
        text = file.read()
    os.waitpid(process, 0)
    return json.loads(text)


def measured(command):
    """Exit code, what it said, seconds, and the most memory that it had at any time."""
    begin = time.monotonic()
    with open("err", "wb") as err:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=err)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, open("err", errors="replace").read(), time.monotonic() - begin, usage.ru_maxrss << 10


def size_of(name):
    return sum(os.path.getsize(os.path.join(folder, file)) for folder, _, files in os.walk(name) for file in files) if os.path.isdir(name) else os.path.getsize(name)


wanted = sys.argv[2:]
problems = 0
with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    os.environ["ARTEL_DATA"] = os.path.join(folder, "data")
    nothing = measured([ARTEL, "--version"])[3]
    for case in CASES:
        if wanted and case.__name__ not in wanted:
            continue
        before = set(os.listdir("."))
        command = made(case)
        size = max([size_of(name) for name in set(os.listdir(".")) - before - {"err"}] or [0])
        code, said, seconds, memory = measured(command)
        lines = [line for line in said.splitlines() if "error" in line]
        taken = max(0, memory - nothing)
        wrong = []
        if code not in (1, 2):
            wrong.append(f"exit code {code}")
        if not lines or len(lines[0]) > 2000:
            wrong.append(f"it said {said[:300]!r}")
        if taken > ROOM + TIMES * size:
            wrong.append("too much memory")
        if seconds > SECONDS:
            wrong.append("too slow")
        print(f"{case.__name__}: {size / 1e6:.1f} MB, took {taken / 1e6:.0f} MB and {seconds:.1f} s: {lines[0][:150] if lines else said[:150]}"
              + (f"  FAILED: {', '.join(wrong)}" if wrong else ""), flush=True)
        problems += bool(wrong)
sys.exit(problems > 0)
