#!/usr/bin/env bash
# namespaces.sh PROGRAM: four ranks on two emulated hosts with a network between them, over gloo and encrypted. Then
# what canonical sums put on the wire of each host.
# Exit code 77 where the machine does not allow network namespaces.
set -uo pipefail
program=$1
id=artel$$
cannot() { echo "network namespaces are not available here: $1"; exit 77; }

[[ $(id -u) -eq 0 ]] || cannot "not root"
command -v ip >/dev/null || cannot "no ip command"
ip netns add ${id}a 2>/dev/null || cannot "ip netns add failed"
folder=$(mktemp -d)
cleanup() { ip netns del ${id}a 2>/dev/null; ip netns del ${id}b 2>/dev/null; rm -rf "$folder"; }
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

# Ranks 0 and 1 on the first host, 2 and 3 on the second: of two hosts, each sends the bytes of a sum once.
bytes=$((4 << 20)) promised=$((8 * bytes))
on_wire() { ip netns exec ${id}a cat /sys/class/net/v0/statistics/tx_bytes; }
for transport in gloo tcp tls; do
  ((++port))
  pids=() before=$(on_wire)
  for rank in 0 1 2 3; do
    host=${id}a; interface=v0
    if ((rank > 1)); then host=${id}b; interface=v1; fi
    ip netns exec $host unshare --uts bash -c \
      "hostname $host; exec $program $transport $rank 4 10.98.0.1:$port $interface $bytes" >"$folder/$rank" &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid" || status=1; done
  counted=$(($(<"$folder/0") + $(<"$folder/1"))) wire=$(($(on_wire) - before))
  echo "$transport: promised $promised bytes of the first host, counted $counted, on the wire $wire"
  # Heads of messages; then frames, acknowledgements and joining.
  ((counted >= promised && counted < promised + promised / 100)) || { echo "wrong count"; status=1; }
  ((wire >= promised && wire < promised + promised / 10)) || { echo "wrong bytes on the wire"; status=1; }
done
exit $status
