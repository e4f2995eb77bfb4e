"""files.py ARTEL [CASE]: gives files made to do harm to the program. Each must be refused: with an exit code and one line that names the
file, not by a signal, and without taking more memory than a small multiple of the file's size."""
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import threading
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
    newest = max(name for name in os.listdir(folder) if name.startswith("step-"))
    manifest = os.path.join(folder, newest, "checkpoint.json")
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


def jpeg_of_many_scans():
    """16 million pixels, which 882 scans of a few bytes each refine again and again."""
    side, blocks = 4000, (4000 // 8) ** 2

    def segment(marker, data):
        return struct.pack(">BBH", 0xFF, marker, len(data) + 2) + data

    def stuffed(bits):
        bits += "1" * (-len(bits) % 8)
        return bytes(int(bits[i:i + 8], 2) for i in range(0, len(bits), 8)).replace(b"\xff", b"\xff\0")

    def scan(first, last, high, low, bits):
        return segment(0xDA, bytes([1, 1, 0, first, last, high << 4 | low])) + stuffed(bits)

    one_code = bytes([1] + [0] * 15)
    picture = b"\xff\xd8" + segment(0xDB, bytes([0] + [1] * 64))
    picture += segment(0xC2, struct.pack(">BHHBBBB", 8, side, side, 1, 1, 0x11, 0))
    picture += segment(0xC4, b"\0" + one_code + b"\0") + segment(0xC4, b"\x10" + one_code + b"\xe0")
    picture += scan(0, 0, 0, 0, "0" * blocks)
    nothing = "".join("0" + format(min(32767, blocks - done) - 16384 if blocks - done >= 16384 else 0, "014b")
                      for done in range(0, blocks, 32767))
    for coefficient in range(1, 64):
        for low in range(13, -1, -1):
            picture += scan(coefficient, coefficient, 0 if low == 13 else low + 1, low, nothing)
    for kind in "ab":
        os.makedirs(f"scans/{kind}", exist_ok=True)
        write(f"scans/{kind}/0.jpg", picture + b"\xff\xd9")
    write("scans.toml", '[data]\nset = "folder"\npath = "scans"\nimage_size = 8\n[model]\nlayers = ["flatten", "dense 2"]\n[train]\nbatch_size = 2\n')
    return [ARTEL, "train", "scans.toml", "--out", "scans-run"]


# ---- formats of weights that name the same bytes again and again

def hdf5(members, header, data=b""):
    """A file whose only group names the object of this header so many times. `header(address of the data)` makes the messages."""
    names_at, tree_at, heap_at = 96 + 40, 96 + 40 + 16, 96 + 40 + 16 + 544
    names = b"".join(b"%07d\0" % i for i in range(members))
    list_at = heap_at + 32
    entries_bytes = 8 + 40 * members
    heap_data_at = list_at + entries_bytes
    object_at = heap_data_at + len(names)
    messages = header(0)
    messages = header(object_at + 16 + sum(map(len, messages)) + 1)  # not aligned: it has to be copied
    body = b"".join(messages)
    root = struct.pack("<BBHIII", 1, 0, 1, 1, 24, 0) + struct.pack("<HHBxxx", 17, 16, 0) + struct.pack("<QQ", tree_at, heap_at)
    superblock = b"\x89HDF\r\n\x1a\n" + bytes([0, 0, 0, 0, 0, 8, 8, 0]) + struct.pack("<HHI", 4, 16, 0)
    superblock += struct.pack("<QQQQ", 0, 2**64 - 1, 2**40, 2**64 - 1) + struct.pack("<QQII16x", 0, 96, 0, 0)
    tree = (b"TREE" + struct.pack("<BBHQQ", 0, 0, 1, 2**64 - 1, 2**64 - 1) + struct.pack("<QQQ", 0, list_at, 0)).ljust(544, b"\0")
    heap = b"HEAP" + bytes(4) + struct.pack("<QQQ", len(names), 0, heap_data_at)
    entries = b"SNOD" + struct.pack("<BBH", 1, 0, members)
    entries += b"".join(struct.pack("<QQII16x", 8 * i, object_at, 0, 0) for i in range(members))
    assert len(superblock) == 96 and len(root) == 40
    of_object = struct.pack("<BBHIII", 1, 0, len(messages), 1, len(body), 0) + body
    return superblock + root + bytes(tree_at - names_at) + tree + heap + entries + names + of_object + b"\0" + data


def hdf5_message(kind, data):
    data += b"\0" * (-len(data) % 8)
    return struct.pack("<HHBxxx", kind, len(data), 0) + data


def hdf5_of_links():
    """65,000 names of one data set of 1 MB."""
    size = 1 << 20

    def header(address):
        return [hdf5_message(1, bytes([1, 1, 0, 0, 0, 0, 0, 0]) + struct.pack("<Q", size // 4)),
                hdf5_message(3, bytes([0x11, 0x20, 0x1F, 0]) + struct.pack("<IHHBBBBI", 4, 0, 32, 23, 8, 0, 23, 127)),
                hdf5_message(8, bytes([3, 1]) + struct.pack("<QQ", address, size))]
    return verify(write("links.h5", hdf5(65000, header, bytes(size))))


def hdf5_of_messages():
    """65,000 names of one object whose header has 65,535 messages that say nothing."""
    return verify(write("messages.h5", hdf5(65000, lambda _: [hdf5_message(0, b"")] * 65535)))


def protobuf(*fields):
    def varint(number):
        out = bytearray()
        while number >= 0x80:
            out.append(number & 0x7F | 0x80)
            number >>= 7
        return bytes(out + bytes([number]))
    return b"".join(varint(number << 3) + varint(value) if isinstance(value, int) else varint(number << 3 | 2) + varint(len(value)) + value
                    for number, value in fields)


def onnx_with_one_external_file():
    """20,000 tensors that all lie in the same megabyte."""
    write("weights.bin", bytes((1 << 20) + 1))

    def entry(key, value):
        return 13, protobuf((1, key), (2, value))
    tensors = [(5, protobuf((1, 1 << 18), (2, 1), (8, b"w%d" % i), entry(b"location", b"weights.bin"), entry(b"offset", b"1"), (14, 1)))
               for i in range(20000)]
    return verify(write("external.onnx", protobuf((1, 8), (7, protobuf(*tensors)))))


def tfjs_that_names_a_file_again():
    write("group.bin", bytes(1 << 20))
    weights = [{"name": f"w{i}", "shape": [(1 << 18) - 1], "dtype": "float32"} for i in range(20000)]
    return verify(write("again.json", json.dumps([{"paths": ["group.bin"] * 20000, "weights": weights}])))


def safetensors_shape_of_many_axes():
    shape = ",".join(["1"] * 20000).encode()
    one = b'"w%d":{"dtype":"F32","shape":[' + shape + b'],"data_offsets":[%d,%d]}'
    header = b"{" + b",".join(one % (i, 4 * i, 4 * i + 4) for i in range(50)) + b"}"
    return verify(write("axes.safetensors", safetensors(header, bytes(200))))


def table_with_names_of_megabytes():
    """The column that the configuration asks for is compared with the names that there are, to make a suggestion."""
    command = table("names", "a" * 2_000_000 + "," + "b" * 2_000_000 + ",kind\n1,2,x\n")
    return command + ["--set", "data.target=" + "c" * 200]


# ---- a run's folder

def folder_of_a_run(name):
    subprocess.run(table(name, "a,b,kind\n" + "".join(f"{i % 7},{i % 5},{'xy'[i % 2]}\n" for i in range(100))), check=True, capture_output=True)
    return name


def summary_of_brackets():
    folder = folder_of_a_run("nested-summary")
    write(folder + "/summary.json", "[" * 80_000 + "]" * 80_000)
    return [ARTEL, "export", folder, "--json"]


def texts_of_brackets():
    folder = folder_of_a_run("nested-texts")
    write(folder + "/texts.jsonl", '{"a":' * 80_000 + "1" + "}" * 80_000 + "\n")
    write(folder + "/mistakes.json", "[" * 200_000 + "]" * 200_000)
    return [ARTEL, "export", folder, "--html"]


def pipe_as_metrics():
    folder = folder_of_a_run("pipe")
    os.remove(folder + "/metrics.jsonl")
    os.mkfifo(folder + "/metrics.jsonl")
    return [ARTEL, "runs", "--in", "."]


def pipe_as_weights():
    os.mkfifo("pipe.safetensors")
    return verify("pipe.safetensors")


def lock_that_leads_elsewhere():
    """Signing the lock would overwrite what it points to."""
    folder = folder_of_a_run("linked")
    write("precious", "do not touch")
    os.remove(folder + "/lock")
    os.symlink("../precious", folder + "/lock")
    return [ARTEL, "train", "linked.toml", "--out", folder, "--resume", "--set", "train.steps=6"]


def precious_is_untouched():
    with open("precious") as file:
        return file.read() == "do not touch"


def names_that_speak_to_terminals():
    """Colours, a new title of the window, and lines that look like the program's own."""
    name = "\\u001b[31mred\\u001b]0;owned\\u0007\\u009b2J\\r\\nartel: all is well"
    one = safetensors(f'{{"{name}":{{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}}}'.encode(), bytes(4))
    other = safetensors(b'{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', bytes(4))
    return [ARTEL, "verify", write("speaks.safetensors", one), write("silent.safetensors", other)]


# Those that fail without an error, those that need not be refused, and what must be true after others.
SILENT = {names_that_speak_to_terminals}
HARMLESS = {summary_of_brackets, texts_of_brackets, pipe_as_metrics}
AFTERWARDS = {lock_that_leads_elsewhere: precious_is_untouched}
CASES = [pt_that_inflates, npz_that_inflates, npz_that_says_terabytes, npz_with_one_large_array, overlapping_entries, wrong_checksum,
         pickle_with_a_key_a_million_times, pickle_of_lists_of_lists, safetensors_shape_of_brackets, safetensors_header_nested_deeply,
         safetensors_of_empty_lists, safetensors_of_names, toml_key_of_many_parts, toml_key_behind_a_string, toml_arrays_nested_deeply,
         checkpoint_with_a_nested_seed, columns_that_explode, png_of_a_million_by_a_million, jpeg_of_many_scans,
         hdf5_of_links, hdf5_of_messages, onnx_with_one_external_file, tfjs_that_names_a_file_again, safetensors_shape_of_many_axes,
         table_with_names_of_megabytes, summary_of_brackets, texts_of_brackets, pipe_as_metrics, pipe_as_weights, names_that_speak_to_terminals, lock_that_leads_elsewhere]


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
    with open("err", "wb") as err, open("out", "wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=err)
        killer = threading.Timer(2 * SECONDS, process.kill)
        killer.start()
        _, status, usage = os.wait4(process.pid, 0)
        killer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
    with open("err", "rb") as err, open("out", "rb") as out:
        said, printed = err.read(), out.read()
    obeyed = bool(re.search(rb"[\0-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]", said + printed))  # by a terminal
    return process.returncode, obeyed, (said if b"error" in said else said + printed).decode(errors="replace"), time.monotonic() - begin, usage.ru_maxrss << 10


def size_of(name):
    return sum(os.lstat(os.path.join(folder, file)).st_size for folder, _, files in os.walk(name) for file in files) if os.path.isdir(name) else os.path.getsize(name)


wanted = sys.argv[2:]
problems = 0
with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    os.environ["ARTEL_DATA"] = os.path.join(folder, "data")
    nothing = measured([ARTEL, "--version"])[4]
    for case in CASES:
        if wanted and case.__name__ not in wanted:
            continue
        before = set(os.listdir("."))
        command = made(case)
        size = max([size_of(name) for name in set(os.listdir(".")) - before - {"err", "out"}] or [0])
        code, obeyed, said, seconds, memory = measured(command)
        lines = [line for line in said.splitlines() if "error" in line]
        taken = max(0, memory - nothing)
        wrong = []
        if code not in ((0,) if case in HARMLESS else (1, 2)):
            wrong.append(f"exit code {code}")
        if case not in HARMLESS | SILENT and (not lines or len(lines[0]) > 2000):
            wrong.append(f"it said {said[:300]!r}")
        if taken > ROOM + TIMES * size:
            wrong.append("too much memory")
        if obeyed:
            wrong.append(f"control characters in {said[:300]!r}")
        if seconds > SECONDS:
            wrong.append("too slow")
        if case in AFTERWARDS and not AFTERWARDS[case]():
            wrong.append("it did harm")
        print(f"{case.__name__}: {size / 1e6:.1f} MB, took {taken / 1e6:.0f} MB and {seconds:.1f} s: {lines[0][:150] if lines else said[:150]}"
              + (f"  FAILED: {', '.join(wrong)}" if wrong else ""), flush=True)
        problems += bool(wrong)
sys.exit(problems > 0)
