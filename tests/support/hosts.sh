# Sourced by scripts that need emulated hosts: network namespaces joined by a switch, and optionally machines with their own
# host name, processes, home folder and sshd. Exits with 77 where this machine does not allow them.
#
#   make_switch                  # then, for each host:
#   add_port 0 10.96.0.1         # the namespace ${hosts_id}0, whose interface v0 has that address
#   in_network 0 COMMAND...      # runs a command there
#   make_machines n01 n02 n03    # or: a switch and machines that reach each other by name and by ssh
#   on n02 'artel train run.toml'  # a shell line there, in its home folder, which is $(home_of n02) here
#   power_off n01                # all of its processes end at once, and its wire is dead
#
# Call remove_hosts from the script's EXIT trap.
hosts_id=artel$$
hosts_subnet=10.96.0
declare -A machine_init=() machine_port=()

cannot() { echo "emulated hosts are not available here: $1" >&2; exit 77; }

in_network() { ip netns exec "$hosts_id$1" "${@:2}"; }

make_switch() {
  [[ $(id -u) -eq 0 ]] || cannot "not root"
  command -v ip >/dev/null || cannot "no ip command"
  ip netns add "${hosts_id}sw" 2>/dev/null || cannot "ip netns add failed"
  in_network sw ip link add br0 type bridge || cannot "no bridge"
  in_network sw ip link set br0 up
}

# add_port NUMBER ADDRESS
add_port() {
  ip netns add "$hosts_id$1"
  ip link add v0 netns "$hosts_id$1" type veth peer name "p$1" netns "${hosts_id}sw" || cannot "no veth"
  in_network "$1" bash -c "ip addr add $2/24 dev v0; ip link set v0 up; ip link set lo up"
  in_network sw bash -c "ip link set p$1 master br0; ip link set p$1 up"
}

# limit_port NUMBER RATE: both directions of a wire, as 1gbit. BBR, the default of some systems, leaves 1 % of a line free; of
# the others, only reno is allowed everywhere.
limit_port() {
  local limit="root tbf rate $2 burst 256kb latency 100ms"
  in_network "$1" bash -c "tc qdisc add dev v0 $limit && sysctl -qw net.ipv4.tcp_congestion_control=reno" || cannot "no traffic control"
  in_network sw tc qdisc add dev "p$1" $limit
}

# named NUMBER COMMAND...: in the network of a host, and under its name. `become_named ... &` is the process $! itself.
become_named() { exec ip netns exec "$hosts_id$1" unshare --uts bash -c 'hostname "$0"; exec "$@"' "$hosts_id$1" "${@:2}"; }
named() { (become_named "$@"); }

home_of() { echo "$folder/$1"; }
address_of() { echo "$hosts_subnet.$((machine_port[$1] + 1))"; }

# make_machines NAME...: each has its own mounts, so nothing that one writes below its home or /tmp is seen by another. Their
# ssh keys, and the password of root there ("secret"), are made for this test.
make_machines() {
  local name number=0
  command -v sshd >/dev/null || [[ -x /usr/sbin/sshd ]] || cannot "no sshd (tools/setup test)"
  make_switch
  mkdir -p "$folder/keys"
  ssh-keygen -q -t ed25519 -N '' -f "$folder/keys/user"
  ssh-keygen -q -t ed25519 -N '' -f "$folder/keys/host"
  echo "127.0.0.1 localhost" >"$folder/hosts"
  echo "root:$(openssl passwd -6 secret):20000:0:99999:7:::" >"$folder/shadow"
  for name; do
    machine_port[$name]=$number
    echo "$(address_of "$name") $name" >>"$folder/hosts"
    echo "$name,$(address_of "$name") $(cut -d' ' -f1,2 "$folder/keys/host.pub")" >>"$folder/keys/known"
    ((++number))
  done
  for name; do
    add_port "${machine_port[$name]}" "$(address_of "$name")"
    start_machine "$name"
  done
  for name; do await_machine "$name"; done
}

start_machine() {
  local home
  home=$(home_of "$1")
  [[ -d $home/.ssh ]] || set_up_home "$home"
  # The first process of a machine collects the orphans, as an init does.
  (exec ip netns exec "$hosts_id${machine_port[$1]}" unshare --mount --uts --pid --ipc --fork --kill-child --mount-proc bash -c '
    hostname "$0"
    mount --bind "$1" /root
    mount --bind "$2" /etc/hosts
    mount --bind "$3" /etc/shadow
    mount -t tmpfs none /run && mkdir -p /run/sshd
    mount -t tmpfs none /dev/shm
    mount -t tmpfs none /tmp
    cd /root
    /usr/sbin/sshd -f /root/.ssh/sshd_config -E /root/.ssh/sshd.log
    touch /root/.ssh/up
    while :; do sleep 1000 & wait $!; done' "$1" "$home" "$folder/hosts" "$folder/shadow" </dev/null >"$home/.ssh/init.log" 2>&1) &
  machine_init[$1]=$!
}

set_up_home() {
  local home=$1
  mkdir -p "$home/.ssh" "$home/bin"
  cp "$folder/keys/user" "$home/.ssh/id_ed25519"
  cp "$folder/keys/user.pub" "$home/.ssh/authorized_keys"
  cp "$folder/keys/known" "$home/.ssh/known_hosts"
  cp "$folder/keys/host" "$home/.ssh/host_key"
  chmod -R go= "$home/.ssh"
  cat >"$home/.ssh/sshd_config" <<CONFIG
HostKey /root/.ssh/host_key
PidFile none
UsePAM no
StrictModes no
PermitRootLogin yes
AuthorizedKeysFile /root/.ssh/authorized_keys
MaxStartups 100
Subsystem sftp internal-sftp
SetEnv PATH=/root/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
CONFIG
}

await_machine() {
  local tries=0
  until [[ -e $(home_of "$1")/.ssh/up ]]; do
    sleep 0.02
    ((++tries < 500)) || { cat "$(home_of "$1")/.ssh/init.log"; cannot "machine $1 does not start"; }
  done
}

# on MACHINE LINE: the exit code and the output are those of the line.
on() {
  local init
  init=$(pgrep -P "${machine_init[$1]}")
  nsenter --target "$init" --mount --uts --net --pid --ipc -- env -i HOME=/root USER=root LC_ALL=C \
    PATH=/root/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin bash -c "cd /root; $2"
}

# processes_on MACHINE PATTERN: how many of its processes have a command line that matches.
processes_on() { on "$1" "pgrep -fc -- '$2'" || true; }

cut_wire() { in_network sw ip link set "p${machine_port[$1]}" down; }
mend_wire() { in_network sw ip link set "p${machine_port[$1]}" up; }

power_off() {
  cut_wire "$1"
  kill -KILL "${machine_init[$1]}"
  wait "${machine_init[$1]}" 2>/dev/null || true
  rm -f "$(home_of "$1")/.ssh/up"
}

power_on() {
  local other tries=0
  mend_wire "$1"
  start_machine "$1"
  await_machine "$1"
  # The kernel needs a moment until the wire carries something again.
  for other in "${!machine_init[@]}"; do
    [[ $other != "$1" && -e $(home_of "$other")/.ssh/up ]] || continue
    until on "$1" "timeout 1 bash -c '</dev/tcp/$other/22'" 2>/dev/null; do
      sleep 0.1
      ((++tries < 100)) || cannot "no way from $1 to $other"
    done
  done
}

remove_hosts() {
  local name port
  for name in "${!machine_init[@]}"; do
    kill -KILL "${machine_init[$name]}" 2>/dev/null && wait "${machine_init[$name]}" 2>/dev/null
  done
  for port in $(ip netns list 2>/dev/null | cut -d' ' -f1 | grep "^$hosts_id"); do ip netns del "$port"; done
}
