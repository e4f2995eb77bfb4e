#!/usr/bin/env bash
# run.sh ARTEL PACKAGING CASE: runs one case (a function test_CASE below) in an empty folder.
set -euo pipefail
artel=$1 packaging=$2 case=$3
source "$(dirname "$0")/../support.sh"
trap 'kill $(jobs -p) 2>/dev/null || true; wait; remove_folder' EXIT

# A job on one node with three tasks, and the same job submitted again.
test_slurm() {
  make_run
  mkdir bin
  ln -s "$artel" bin/artel
  cat >bin/srun <<'SH'
#!/usr/bin/env bash
export SLURM_STEP_NUM_TASKS=3 SLURM_STEP_NUM_NODES=1 SLURM_STEP_ID=0
for rank in 1 2; do SLURM_PROCID=$rank "$@" & done
SLURM_PROCID=0 "$@"
wait -n && wait -n
SH
  chmod +x bin/srun
  submit() {
    PATH=$folder/bin:$PATH SLURM_JOB_ID=$$ SLURM_JOB_NAME=artel SLURM_CPUS_PER_TASK=1 expect 0 bash "$packaging/slurm.sh" "$1"
  }
  expect 0 "$artel" train run.toml --out one
  submit run.toml
  contains err "worker 2 on host"
  expect 0 "$artel" verify one runs/run-artel
  sed -i 's/epochs = 4/epochs = 6/' run.toml
  expect 0 "$artel" train run.toml --out longer
  submit run.toml
  expect 0 "$artel" verify longer runs/run-artel
  expect 1 bash "$packaging/slurm.sh"
  contains err "usage: sbatch packaging/slurm.sh FILE.toml"
}

# What a pod runs, with this folder in place of the volumes and ports in place of the names of pods.
test_kubernetes() {
  make_run
  python3 - "$packaging/kubernetes.yaml" >arguments <<'PY'
import json, re, sys

text = open(sys.argv[1], encoding="utf-8").read()
arguments = json.loads(re.search(r"args: (\[.*?\])", text, re.S)[1])
service, pods = re.search(r"kind: Service\nmetadata:\n  name: (\S+)", text)[1], int(re.search(r"completions: (\d+)", text)[1])
job = re.search(r"kind: Job\nmetadata:\n  name: (\S+)", text)[1]
assert f"subdomain: {service}\n" in text and f"job-name: {job}\n" in text and f"parallelism: {pods}\n" in text
port = re.search(r"port: (\d+)", text)[1]
addresses = arguments[arguments.index("--join") + 1]
assert addresses == ",".join(f"{job}-{i}.{service}:{port}" for i in range(pods)), addresses
assert {"/config", "/runs"} == set(re.findall(r"mountPath: (\S+)", text))
print("\n".join(arguments))
PY
  sed -i "s,^/config/train.toml$,run.toml,; s,^/runs/,runs/,; s,^artel-0.*:29400$,127.0.0.1:$port," arguments
  local words
  mapfile -t words <arguments
  expect 0 "$artel" train run.toml --out one
  export ARTEL_TOKEN=secret
  "$artel" "${words[@]}" >out1 2>err1 &
  local first=$!
  "$artel" "${words[@]}" >out2 2>err2 || fail "$(cat err2)"
  wait $first || fail "$(cat err1)"
  grep -q "2 workers" err1 err2 || fail "$(cat err1 err2)"
  expect 0 "$artel" verify one runs/run
}

"test_$case"
echo "passed"
