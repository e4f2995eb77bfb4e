#!/usr/bin/env bash
# finds.sh PROGRAM FAULT: the model fuzzer finds a fault of its own, attributes it to its case, reduces the network to the layer that has
# it, writes a file that shows it, and continues.
set -euo pipefail
program=$1 fault=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

fail() {
  echo "$*"
  tail -50 "$folder/out"
  exit 1
}
# pretend FAULT OPTION ...: must find something wrong.
pretend() {
  local code=0
  "$program" --pretend "$1" --at '"tanh"' "${@:2}" >"$folder/out" 2>&1 || code=$?
  [[ $code -eq 1 ]] || fail "exit code $code, expected 1"
}

pretend wrong --seed 2 --cases 60 --failures "$folder"
case=$(sed -n 's/^case \([0-9]*\) .*: pretended to be wrong$/\1/p' "$folder/out" | head -1)
if [[ $fault == crash ]]; then
  pretend crash --seed 2 --cases $((case + 3)) --failures "$folder"
  grep -q "^case $case .* ended its process" "$folder/out" || fail "case $case was not named"
  [[ $(tail -1 "$folder/out" | tr -dc '0-9 ' | awk '{print $1 + $2 + $3}') -eq $((case + 2)) ]] || fail "it did not go on"
elif [[ $fault == hang ]]; then
  patience=1
  [[ -z ${ARTEL_SANITIZED:-} ]] || patience=20  # what does not hang must not seem to
  pretend hang --seed 2 --case "$case" --patience $patience --failures "$folder"
  grep -q "^case $case .* hung" "$folder/out" || fail "case $case was not named"
fi
[[ $(grep -c '^layers = \["tanh"\]$' "$folder/out") -eq $(grep -c '^reducing' "$folder/out") ]] ||
  fail "not every network was reduced to its one layer"
tail -1 "$folder/out" | grep -qE ' [1-9][0-9]* wrong' || fail "nothing was counted"
pretend wrong "$folder/case_$case.toml"
grep -q "pretended to be wrong" "$folder/out" || fail "case_$case.toml does not show the fault again"
