#!/usr/bin/env bash
# run.sh ARTEL SOURCE CASE: devices in the real program. Cases that need an OpenCL driver fail without one, because tools/setup
# installs one. They skip where ARTEL_TESTS_WITHOUT_OPENCL is set, for machines that cannot have one.
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
  grep -q '^opencl:0' listed && return
  cat listed
  [[ -z ${ARTEL_TESTS_WITHOUT_OPENCL:-} ]] || { echo "skipped: no OpenCL device"; exit 77; }
  fail "no OpenCL device; tools/setup test installs a driver for CPUs"
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
    contains err 'device "auto" is the CPU: [opencl] no OpenCL loader'
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
    contains out "copied per step: "
    # Neither copies nor the update are kernels.
    share=$(grep -oE '[0-9.]+ % of the step in kernels' out | cut -d' ' -f1)
    rest=$(grep -E '^update and waiting' out | awk '{ print $5 }')
    copies=$(awk '{ for (i = 1; i < NF - 1; ++i) if ($i == "copy" && $(i + 1) ~ /^[0-9]/) sum += $(i + 2) } END { print sum + 0 }' out)
    awk -v s="$share" -v r="$rest" -v c="$copies" 'BEGIN { all = s + r + c; exit !(c > 0 && all > 98 && all < 102) }' ||
      { cat out >&2; fail "$share % in kernels, $copies % in copies, $rest % in the rest"; }
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
    one_error "opencl:0 (" "fails the self-test: a network of pictures: element 0 of the loss" "--untested-device"
    expect 1 "$artel" train run.toml --out run --device opencl --force
    one_error "fails the self-test"
    [[ ! -e run/checkpoints ]] || fail "a refused device has trained"
    expect 1 "$artel" devices
    contains out "failed"
    expect 0 "$artel" train run.toml --out run --device opencl --untested-device --set train.steps=1
    rm -rf run
    expect 0 "$artel" train run.toml --out run --device "opencl untested" --set train.steps=1
    # Lost after it was accepted.
    export ARTEL_FAULT=lost
    expect 1 "$artel" train run.toml --out lost --device opencl --untested-device
    contains err "opencl:0 ("
    contains err "starting a kernel failed: out of device resources, or the device is lost"
    ;;
  full)
    needs_driver
    export ARTEL_OPENCL=$FAULTY_OPENCL ARTEL_FAULT=full
    expect 1 "$artel" train run.toml --out run --device opencl --set 'model.layers=["dense 400000", "relu", "dense 2"]'
    [[ $(grep -c "error:" err) -eq 1 ]] || { cat err >&2; fail "expected one error"; }
    for text in "opencl:0 (" "cannot allocate 9.2 MiB: out of device memory" "the device has" "use a smaller batch"; do
      contains err "$text"
    done
    expect 0 "$artel" train run.toml --out small --device opencl --set train.steps=1
    ;;
  # With GPUs, a CPU with a driver does not count, and workers take turns.
  choice)
    needs_driver
    count=$("$artel" devices --quick | grep -c '^opencl:')
    export ARTEL_OPENCL=$FAULTY_OPENCL ARTEL_FAULT=gpus
    for device in auto opencl; do
      expect 0 "$artel" train run.toml --out "$device" -n $((2 * count + 1)) --device $device --set train.steps=1
      contains err "worker $((2 * count)) of this machine shares opencl:0 ("
      [[ $(grep -c "of this machine shares" err) -eq 1 ]] || { cat err >&2; fail "several workers share a device"; }
    done
    expect 0 "$artel" train run.toml --out same -n 2 --device opencl:1 --set train.steps=1
    contains err "worker 1 of this machine shares opencl:1 ("
    ;;
  # A worker without a device is lost alone. The launcher starts another one, whose driver works.
  lost_worker)
    needs_driver
    export ARTEL_OPENCL=$FAULTY_OPENCL ARTEL_FAULT=lost ARTEL_FAULT_PROCESS=$folder/process
    workers=()
    trap 'kill $(jobs -p) 2>/dev/null || true; wait; remove_folder' EXIT
    start_endless_run 2 --device opencl:0 --set cluster.restarts=2
    echo "${workers[1]}" >next
    mv next process
    awaits "worker 1 (process ${workers[1]} on host $(hostname)) lost its device: opencl:0 ("
    awaits "continuing with 2 workers"
    interrupt
    steps=$(newest_step)
    expect 0 "$artel" train run.toml --out one --device opencl:0 --set train.steps="$steps"
    expect 0 "$artel" verify one run
    ;;
  *) fail "unknown case '$case'" ;;
esac
