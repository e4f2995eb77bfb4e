#!/usr/bin/env bash
# emulated_hosts.sh HOSTS[xRANKS] gloo|tcp|tls|mpi PROGRAM CASES BYTES...: our all_reduce between network namespaces that are
# joined by a switch with 1 Gbit/s ports, with one rank on each or, with gloo, RANKS. Prints what PROGRAM
# (artel_bench_comm) prints. Exit code 77 where the machine does not allow namespaces.
set -uo pipefail
hosts=${1%x*} transport=$2 program=$3
ranks=1
[[ $1 == *x* ]] && ranks=${1#*x}
shift 3
id=artelb$$
cannot() { echo "network namespaces are not available here: $1" >&2; exit 77; }
[[ $(id -u) -eq 0 ]] || cannot "not root"
command -v tc >/dev/null || cannot "no tc command"
ip netns add ${id}sw 2>/dev/null || cannot "ip netns add failed"
cleanup() { for i in sw $(seq 0 $((hosts - 1))); do ip netns del $id$i 2>/dev/null; done; rm -f "${agent:-}"; }
trap cleanup EXIT

# BBR, the default of some systems, leaves 1 % of a line free; of the others, only reno is allowed everywhere.
limit() { tc qdisc add dev "$1" root tbf rate 1gbit burst 256kb latency 100ms; }
export -f limit
ip netns exec ${id}sw ip link add br0 type bridge || cannot "no bridge"
ip netns exec ${id}sw ip link set br0 up
for i in $(seq 0 $((hosts - 1))); do
  ip netns add $id$i
  ip link add v0 netns $id$i type veth peer name p$i netns ${id}sw || cannot "no veth"
  ip netns exec $id$i bash -c "ip addr add 10.97.0.$((i + 1))/24 dev v0; ip link set v0 up; ip link set lo up; limit v0 &&
    sysctl -qw net.ipv4.tcp_congestion_control=reno" || cannot "no traffic control"
  ip netns exec ${id}sw bash -c "ip link set p$i master br0; ip link set p$i up; limit p$i"
done
on_host() { ip netns exec $id$1 unshare --uts bash -c "hostname $id$1; exec ${*:2}"; }

if [[ $transport != mpi ]]; then
  for i in $(seq 1 $((hosts * ranks - 1))); do
    on_host $((i / ranks)) "$program" $transport "$i" $((hosts * ranks)) 10.97.0.1:29872 "$@" >/dev/null &
  done
  on_host 0 "$program" $transport 0 $((hosts * ranks)) 10.97.0.1:29872 "$@"
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
list=$(seq -s, 0 $((hosts - 1)) | sed "s/\([0-9]*\)/$id\1/g")
ip netns exec ${id}0 unshare --uts bash -c "hostname ${id}0; exec mpirun --allow-run-as-root --bind-to none \
  --mca plm_rsh_agent $agent --mca btl tcp,self --mca btl_tcp_if_include v0 --mca oob_tcp_if_include v0 \
  -host $list -np $hosts $program mpi 0 0 - $*"
