#!/usr/bin/env bash
# cut.sh ARTEL WHAT [OPTION...]: three workers on three emulated hosts with a switch between them. WHAT is cut: the wire of a host (its
# number), or the path between hosts 1 and 2, which both still reach host 0 (pair). The two others continue with the bits of an undisturbed
# run, and the worker that is cut off stops and says why. OPTIONs are those of `artel train`. Exit code 77 where the machine does not allow
# network namespaces.
set -euo pipefail
artel=$1 what=$2
shift 2
source "$(dirname "$0")/../support.sh"
source "$(dirname "$0")/../../support/hosts.sh"
processes=()
cleanup() {
  kill -KILL "${processes[@]}" 2>/dev/null || true
  wait || true
  remove_hosts
  remove_folder
}
trap cleanup EXIT
make_switch
for i in 0 1 2; do add_port $i 10.96.0.$((i + 1)); done

make_run
for i in 0 1 2; do
  become_named $i "$artel" train run.toml --out run -n 3 --rank $i --join 10.96.0.1:29873 --token secret \
    --set train.steps=100000000 --set train.save_every=50 --set cluster.patience=2 "$@" >log$i 2>&1 &
  processes+=($!)
done
touch err
wait_for_checkpoint run
sleep 0.7  # until all know what the others do

begin=$SECONDS
if [[ $what == pair ]]; then
  cut=2 leader=0
  # Isolated ports exchange nothing with each other.
  for i in 1 2; do in_network sw bridge link set dev p$i isolated on; done
  awaits_in log0 "worker 2 (process ${processes[2]} on host ${hosts_id}2) left: it cannot reach worker 1 on host ${hosts_id}1"
  awaits_in log2 "worker 2 on host ${hosts_id}2 cannot reach worker 1 on host ${hosts_id}1, although both reach worker 0; it leaves the run"
else
  cut=$what leader=$((what == 0))
  in_network sw ip link set p$cut down
  awaits_in log$leader "worker $cut (process"
  contains log$leader "did not answer for 2 s, last seen "
  awaits_in log$cut "only 1 of 3 workers can be reached, and the others may continue without them"
fi
awaits_in log$leader "continuing with 2 workers"
# Many times the patience, but less than the timeouts of connections.
((SECONDS - begin <= 30)) || fail "the others continued only after $((SECONDS - begin)) s"
code=0
wait "${processes[$cut]}" || code=$?
((code == 1)) || fail "exit code $code of the worker that is cut off"
before=$(newest_step) tries=0
until (($(newest_step) >= before + 100)); do
  sleep 0.1
  ((++tries < 600)) || fail "the others do not go on: $(cat log$leader)"
done
kill -INT "${processes[$leader]}"
for i in 0 1 2; do
  ((i == cut)) || wait "${processes[$i]}" || true
done
expect 0 "$artel" train run.toml --out one --set train.steps=$(newest_step)
expect 0 "$artel" verify one run
echo "passed"
