#!/usr/bin/env bash
# run.sh ARTEL SOURCE CASE: devices in the real program. Cases that need an OpenCL driver skip without one, and say so.
set -euo pipefail
artel=$1 source=$2 case=$3
source "$source/tests/system/support.sh"

# One line on standard error with these texts.
one_error() {
  [[ $(wc -l <err) -eq 1 ]] || { cat err >&2; fail "expected one line"; }
  for text in "$@"; do contains err "$text"; done
}

needs_driver() {
  "$artel" devices --quick >listed
  grep -q '^opencl:0' listed || { cat listed; echo "skipped: tools/setup test installs a driver"; exit 77; }
}

make_run
case $case in
  no_loader)
    export ARTEL_OPENCL=$folder/missing.so
    expect 0 "$artel" devices --quick
    contains out "cpu"
    contains out "no OpenCL loader"
    expect 1 "$artel" train run.toml --out run --device opencl
    one_error "no OpenCL loader" "missing.so" "install"
    expect 0 "$artel" train run.toml --out run --device auto --set train.epochs=1
    ;;
  no_platform)
    needs_driver
    mkdir vendors
    export OCL_ICD_VENDORS=$folder/vendors
    expect 0 "$artel" devices --quick
    contains out "no platform"
    expect 1 "$artel" train run.toml --out run --device opencl
    one_error "no platform" "pocl-opencl-icd"
    ;;
  names)
    expect 1 "$artel" train run.toml --out run --device gpu
    one_error "got 'gpu'" '"opencl:N"'
    needs_driver
    expect 1 "$artel" train run.toml --out run --device opencl:99
    one_error "opencl:99" "this machine has" "artel devices"
    expect 1 "$artel" train run.toml --out run --device opencl --set train.precision=bf16
    contains err "bf16"
    ;;
  list)
    needs_driver
    expect 0 "$artel" devices
    contains out "passed"
    contains out "GFLOP/s"
    ;;
  bench)
    needs_driver
    expect 0 "$artel" bench train mlp --device opencl --batch 8 --seconds 0 --json
    contains out '"device":"opencl:0 ('
    contains out '"bytes_to_device_per_step":'
    expect 0 "$artel" bench --profile run.toml --device opencl --threads 1 --seconds 0
    contains out " on opencl:0 ("
    ;;
  train)
    needs_driver
    expect 0 "$artel" train run.toml --out one --lanes 4 --device opencl
    # The same bits again, and with two workers, which share a device if there is one.
    expect 0 "$artel" train run.toml --out two --lanes 4 --device opencl -n 2
    expect 0 "$artel" verify one two
    # Nearly those of the processor.
    expect 0 "$artel" train run.toml --out here --lanes 4  # with 8, batch norm of two samples amplifies rounding
    expect 0 "$artel" evaluate here
    cp out here.txt
    expect 0 "$artel" evaluate one
    accuracy() { grep -oE 'accuracy [0-9.]+' "$1" | head -1 | cut -d' ' -f2; }
    awk -v a="$(accuracy here.txt)" -v b="$(accuracy out)" 'BEGIN { exit !(a - b < 0.03 && b - a < 0.03) }' ||
      { cat here.txt out >&2; fail "accuracies differ"; }
    ;;
  resume)
    needs_driver
    expect 0 "$artel" train run.toml --out run --device opencl --set train.epochs=2
    expect 0 "$artel" train run.toml --out run --resume --device cpu
    expect 0 "$artel" train run.toml --out run --resume --device opencl --set train.epochs=5
    ;;
  generate)
    needs_driver
    make_text
    expect 0 "$artel" train text.toml --out text --set train.epochs=1 --device opencl
    expect 0 "$artel" generate text --tokens 10 --temperature 0
    cp out here.txt
    expect 0 "$artel" generate text --tokens 10 --temperature 0 --device opencl
    cmp here.txt out || fail "another text"
    ;;
  hosts)
    needs_driver
    source "$source/tests/support/hosts.sh"
    trap 'remove_hosts || true; remove_folder' EXIT
    make_switch
    for host in 0 1; do add_port $host 10.96.0.$((host + 1)); done
    count=$("$artel" devices --quick | grep -c '^opencl:')
    workers=()
    for rank in 0 1; do
      named $rank "$artel" train run.toml --out run -n 2 --rank $rank --join 10.96.0.1:29874 --token secret \
        --device opencl >log$rank 2>&1 &
      workers+=($!)
    done
    for worker in "${workers[@]}"; do wait "$worker" || { cat log0 log1 >&2; fail "a worker failed"; }; done
    # Each is the first on its host.
    for rank in 0 1; do
      grep -q "shares opencl" log$rank && { cat log$rank >&2; fail "worker $rank shares a device with nobody"; }
    done
    # On one host, they share as soon as there are more workers than devices.
    expect 0 "$artel" train run.toml --out shared -n $((count + 1)) --device opencl
    contains err "worker $count of this machine shares opencl:0"
    expect 0 "$artel" verify run shared
    ;;
  faults)
    needs_driver
    export ARTEL_OPENCL=$FAULTY_OPENCL ARTEL_FAULT=wrong
    expect 1 "$artel" train run.toml --out run --device opencl
    one_error "opencl:0 (" "fails the self-test: a network of pictures: result 0" "--force"
    [[ ! -e run/checkpoints ]] || fail "a refused device has trained"
    expect 1 "$artel" devices
    contains out "failed"
    expect 0 "$artel" train run.toml --out run --device opencl --force --set train.steps=1
    # Lost after it was accepted.
    export ARTEL_FAULT=lost
    expect 1 "$artel" train run.toml --out lost --device opencl --force
    contains err "opencl:0 ("
    contains err "starting a kernel failed: out of device resources, or the device is lost"
    ;;
  *) fail "unknown case '$case'" ;;
esac
