#!/usr/bin/env bash
# namespaces.sh PROGRAM: four ranks on two emulated hosts with a network between them, over gloo and encrypted.
# Exit code 77 where the machine does not allow network namespaces.
set -uo pipefail
program=$1
id=artel$$
cannot() { echo "network namespaces are not available here: $1"; exit 77; }

[[ $(id -u) -eq 0 ]] || cannot "not root"
command -v ip >/dev/null || cannot "no ip command"
ip netns add ${id}a 2>/dev/null || cannot "ip netns add failed"
cleanup() { ip netns del ${id}a 2>/dev/null; ip netns del ${id}b 2>/dev/null; }
trap cleanup EXIT
ip netns add ${id}b
ip link add v0 netns ${id}a type veth peer name v1 netns ${id}b || cannot "no veth"
ip netns exec ${id}a ip addr add 10.98.0.1/24 dev v0
ip netns exec ${id}b ip addr add 10.98.0.2/24 dev v1
ip netns exec ${id}a ip link set v0 up; ip netns exec ${id}a ip link set lo up
ip netns exec ${id}b ip link set v1 up; ip netns exec ${id}b ip link set lo up

# rank 0 and 2 on the first host, 1 and 3 on the second, each under a host name of its own.
status=0 port=29870
for transport in gloo tls; do
  ((++port))
  pids=()
  for rank in 0 1 2 3; do
    host=${id}a; interface=v0
    if ((rank % 2)); then host=${id}b; interface=v1; fi
    ip netns exec $host unshare --uts bash -c \
      "hostname $host; exec $program $transport $rank 4 10.98.0.1:$port $interface" &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid" || status=1; done
done
exit $status
