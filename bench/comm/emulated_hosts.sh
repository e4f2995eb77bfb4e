#!/usr/bin/env bash
# emulated_hosts.sh HOSTS[xRANKS] gloo|tcp|tls|mpi PROGRAM CASES BYTES...: our all_reduce between network namespaces that are
# joined by a switch with 1 Gbit/s ports, with one rank on each or, with gloo, RANKS. Prints what PROGRAM
# (artel_bench_comm) prints. Exit code 77 where the machine does not allow namespaces.
set -uo pipefail
hosts=${1%x*} transport=$2 program=$3
ranks=1
[[ $1 == *x* ]] && ranks=${1#*x}
shift 3
source "$(dirname "$0")/../../tests/support/hosts.sh"
trap 'remove_hosts; rm -f "${agent:-}"' EXIT
make_switch
for i in $(seq 0 $((hosts - 1))); do
  add_port $i 10.97.0.$((i + 1))
  limit_port $i 1gbit
done

if [[ $transport != mpi ]]; then
  for i in $(seq 1 $((hosts * ranks - 1))); do
    named $((i / ranks)) "$program" $transport "$i" $((hosts * ranks)) 10.97.0.1:29872 "$@" >/dev/null &
  done
  named 0 "$program" $transport 0 $((hosts * ranks)) 10.97.0.1:29872 "$@"
  status=$?
  wait
  exit $status
fi

# mpirun reaches a namespace by this in place of ssh.
agent=$(mktemp)
cat >"$agent" <<'AGENT'
#!/bin/bash
while [ "${1:0:1}" = "-" ]; do shift; done
host=$1; shift
exec ip netns exec "$host" unshare --uts bash -c "hostname $host; $*"
AGENT
chmod +x "$agent"
list=$(seq -s, 0 $((hosts - 1)) | sed "s/\([0-9]*\)/$hosts_id\1/g")
named 0 mpirun --allow-run-as-root --bind-to none --mca plm_rsh_agent "$agent" --mca btl tcp,self \
  --mca btl_tcp_if_include v0 --mca oob_tcp_if_include v0 -host "$list" -np "$hosts" "$program" mpi 0 0 - "$@"
