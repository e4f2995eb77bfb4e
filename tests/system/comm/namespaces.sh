#!/usr/bin/env bash
# namespaces.sh PROGRAM: four ranks on two emulated hosts with a network between them, over gloo and encrypted. Then
# what canonical sums put on the wire of each host.
# Exit code 77 where the machine does not allow network namespaces.
set -uo pipefail
program=$1
source "$(dirname "$0")/../../support/hosts.sh"
folder=$(mktemp -d)
trap 'remove_hosts; rm -rf "$folder"' EXIT
make_switch
for i in 0 1; do add_port $i 10.98.0.$((i + 1)); done

# rank 0 and 2 on the first host, 1 and 3 on the second, each under a host name of its own.
status=0 port=29870
for transport in gloo tls; do
  ((++port))
  pids=()
  for rank in 0 1 2 3; do
    named $((rank % 2)) "$program" $transport $rank 4 10.98.0.1:$port v0 &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid" || status=1; done
done

# Ranks 0 and 1 on the first host, 2 and 3 on the second: of two hosts, each sends the bytes of a sum once.
bytes=$((4 << 20)) promised=$((8 * bytes))
on_wire() { in_network 0 cat /sys/class/net/v0/statistics/tx_bytes; }
for transport in gloo tcp tls; do
  ((++port))
  pids=() before=$(on_wire)
  for rank in 0 1 2 3; do
    named $((rank / 2)) "$program" $transport $rank 4 10.98.0.1:$port v0 $bytes >"$folder/$rank" &
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
