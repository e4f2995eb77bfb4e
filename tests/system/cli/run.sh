#!/usr/bin/env bash
# run.sh ARTEL ROOT CASE: runs one case (a function test_CASE of the files in this folder) of the program in an empty folder.
set -euo pipefail
artel=$1 root=$2 case=$3 here=$(cd "$(dirname "$0")" && pwd)
source "$here/../support.sh"

# idx FILE TYPE EXTENT... <bytes: an idx file of bytes.
idx() {
  local file=$1 extent
  shift
  printf "\\x00\\x00\\x08\\x$(printf %02x $#)" >"$file"
  for extent; do
    printf "$(printf '\\x%02x\\x%02x\\x%02x\\x%02x' $((extent >> 24)) $((extent >> 16 & 255)) $((extent >> 8 & 255)) $((extent & 255)))" >>"$file"
  done
  cat >>"$file"
}

# Images whose class is the one of four bright rows.
make_images() {
  mkdir images
  local part count
  for part in train t10k; do
    count=$([[ $part == train ]] && echo 200 || echo 40)
    for ((i = 0; i < count; ++i)); do printf "\\x0$((i % 4))"; done | idx images/$part-labels-idx1-ubyte $count
    for ((i = 0; i < count; ++i)); do
      for ((row = 0; row < 4; ++row)); do
        if ((row == i % 4)); then printf '\xff\xf0\xff\xf0'; else printf '\x10\x00\x20\x00'; fi
      done
    done | idx images/$part-images-idx3-ubyte $count 4 4
  done
}

# mistake CODE MESSAGE COMMAND...: the message is the whole of standard error.
mistake() {
  local code=$1 message="artel: error: $2"
  shift 2
  expect "$code" "$artel" "$@"
  [[ $(cat err) == "$message" ]] || fail "artel $*: got '$(cat err)', expected '$message'"
}

# number FILE KEY: of a JSON object.
number() { grep -oE "\"$2\": ?[-0-9.e]+" "$1" | head -1 | sed 's/.*: *//'; }

for part in programs training samples messages; do source "$here/$part.sh"; done
"test_$case"
