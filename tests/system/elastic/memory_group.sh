#!/usr/bin/env bash
# memory_group.sh ARTEL: runs in a group of processes with limited memory (cgroup). A network that has room by itself, but not
# with its data, is refused with one line instead of being killed by the kernel; with more memory it trains. The same for two processes.
# Exit code 77 where this machine does not allow such groups.
set -euo pipefail
artel=$1
source "$(dirname "$0")/../support.sh"
if [[ -w /sys/fs/cgroup/memory ]]; then
  group=/sys/fs/cgroup/memory/artel$$ limit=memory.limit_in_bytes
else
  group=/sys/fs/cgroup/artel$$ limit=memory.max
fi
mkdir "$group" 2>/dev/null && [[ -w $group/$limit ]] || { rmdir "$group" 2>/dev/null; echo "skipped: no memory groups here" >&2; exit 77; }
cleanup() {
  kill $(jobs -p) 2>/dev/null || true
  wait || true
  rmdir "$group" 2>/dev/null || true
  remove_folder
}
trap cleanup EXIT

# limited MIB COMMAND...
limited() {
  echo $(($1 << 20)) >"$group/$limit"
  bash -c 'echo $$ >"$0/cgroup.procs"; exec "$@"' "$group" "${@:2}"
}

# 150 MiB of pixels, which are compressed in the file, and 365 MiB of weights, gradients and momentum.
python3 - <<'PYTHON'
import struct, zipfile
def npy(kind, shape):
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': ({shape}), }}"
    header += " " * (63 - (len(header) + 10) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()
samples = 201000
with zipfile.ZipFile("images.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
    with archive.open("x.npy", "w") as file:
        file.write(npy("|u1", f"{samples}, 1, 28, 28"))
        for _ in range(samples // 1000):
            file.write(bytes(range(256)) * 3062 + bytes(128))
    archive.writestr("y.npy", npy("<i8", f"{samples},") + struct.pack(f"<{samples}q", *(i % 10 for i in range(samples))))
PYTHON
cat >large.toml <<'TOML'
[data]
set = "npz"
path = "images.npz"
test_fraction = 0.001
[model]
layers = ["flatten", "dense 5000", "relu", "dense 5600", "relu", "dense 10"]
[train]
batch_size = 16
steps = 1
optimizer = { name = "sgd", lr = 0.001, momentum = 0.9 }
[cluster]
lanes = 1
threads = 1
TOML
expect 1 limited 440 "$artel" train large.toml --out small
contains err "memory of this machine: got 440 MiB for worker 0, expected at least"
contains err "for its data; try"
expect 0 limited 1400 "$artel" train large.toml --out roomy
# Two processes share the memory: each has the whole network, or a part of it.
expect 1 limited 900 "$artel" train large.toml -n 2 --set cluster.lanes=2 --out small
contains err "memory of this machine: got 450 MiB for worker"
expect 1 limited 600 "$artel" train large.toml -n 2 --set cluster.pipeline=2 --out small
contains err "memory of this machine: got 300 MiB for worker"
expect 0 limited 2400 "$artel" train large.toml -n 2 --set cluster.pipeline=2 --out divided
echo "passed"
