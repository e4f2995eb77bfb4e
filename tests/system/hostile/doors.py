"""doors.py ARTEL: attacks the sockets of runs from outside, without their token, while workers die. The runs must finish, with the bits
of an undisturbed one, and lose no other worker."""
import glob
import multiprocessing
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

ARTEL = os.path.abspath(sys.argv[1])
NOBODY = 65534
CONFIG = """[data]
set = "csv"
path = "data.csv"
[model]
layers = ["dense 16", "relu", "dense 2"]
[train]
batch_size = 40
steps = 1500
[cluster]
lanes = 4
threads = 1
patience = 5
"""


def require(condition, *what):
    if not condition:
        sys.exit("FAILED: " + " ".join(str(each) for each in what))


def text_of(path):
    with open(path, errors="replace") as file:
        return file.read()


def wait_until(condition, what, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        require(time.monotonic() < end, what)
        time.sleep(0.02)


def steps_of(run):
    """Finished steps, by the lines of metrics.jsonl."""
    try:
        return len(text_of(run + "/metrics.jsonl").splitlines())
    except OSError:
        return 0


def sockets_of(process):
    found = set()
    for entry in glob.glob(f"/proc/{process}/fd/*"):
        try:
            match = re.match(r"socket:\[(\d+)\]", os.readlink(entry))
        except OSError:
            continue
        found |= {match[1]} if match else set()
    return found


def ports_of(process):
    """The TCP ports at which a process listens."""
    own = sockets_of(process)
    lines = [line.split() for line in text_of(f"/proc/{process}/net/tcp").splitlines()[1:]]
    return [int(line[1].split(":")[1], 16) for line in lines if line[3] == "0A" and line[9] in own]


def frame(kind, body=b""):
    return struct.pack("<IB", len(body) + 1, kind) + body


def flood(ports):
    """Refused requests with small frames after them, greetings that never end, noise, and silence, from many loopback addresses."""
    os.nice(10)  # leaves the processor to the run
    small = frame(10) * 1_600_000
    first = [frame(10, b"who is there?") + small, frame(1, b"x" * 100) + small, small,
             struct.pack("<IB", 15 << 20, 1) + bytes(1 << 20), os.urandom(1 << 16), b""]
    idle, source = [], 0
    while True:
        for port in ports:
            for bytes_ in first:
                source = source % 250 + 1
                try:
                    connection = socket.create_connection(("127.0.0.1", port), 1, (f"127.0.0.{source}", 0))
                    connection.settimeout(5)
                    idle = idle[-500:] + [connection]
                    connection.sendall(bytes_)
                except OSError:
                    pass


def connect_to_names(names):
    """Connects as another user, again and again, to local names that everybody can read."""
    os.nice(10)
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    while True:
        for name, kind in names:
            connection = socket.socket(socket.AF_UNIX, kind)
            connection.setblocking(False)
            try:
                connection.connect("\0" + name)
            except OSError:
                pass
            connection.close()


def names_of_runs():
    """Of all abstract sockets that listen: name and type."""
    lines = [line.split() for line in text_of("/proc/net/unix").splitlines()[1:]]
    kinds = {"0001": socket.SOCK_STREAM, "0005": socket.SOCK_SEQPACKET}
    return sorted({(line[7][1:], kinds[line[4]]) for line in lines
                   if len(line) > 7 and line[7].startswith("@artel/") and int(line[3], 16) & 0x10000 and line[4] in kinds})


class Attackers:
    def __init__(self, count, what, *arguments):
        self.processes = [multiprocessing.Process(target=what, args=arguments, daemon=True) for _ in range(count)]

    def __enter__(self):
        for process in self.processes:
            process.start()
        return self

    def __exit__(self, *_):
        for process in self.processes:
            require(process.is_alive(), "an attacker has ended before the run")
            process.kill()


def train(*options, log):
    return subprocess.Popen([ARTEL, "train", "run.toml", *options], stdout=subprocess.DEVNULL, stderr=open(log, "w"))


def check(run, logs):
    said = "".join(text_of(log) for log in logs)
    require("did not answer" not in said, "a healthy worker was lost:", said)
    verified = subprocess.run([ARTEL, "verify", "undisturbed", run], capture_output=True, text=True)
    require(verified.returncode == 0, verified.stdout, verified.stderr)


def strangers_at_tcp_doors():
    port = 20000 + os.getpid() % 20000
    options = ["--join", f"127.0.0.1:{port}", "--set", "cluster.workers=2..3", "--out", "joined"]
    logs = [f"joined.{i}" for i in range(4)]
    workers = [train(*options, log=logs[i]) for i in range(2)]
    wait_until(lambda: steps_of("joined") > 0, "the run did not begin")
    ports = [p for worker in workers for p in ports_of(worker.pid)]
    with Attackers(2, flood, ports):
        time.sleep(0.5)
        workers.append(train(*options, log=logs[2]))  # joins while strangers connect
        wait_until(lambda: "joins" in "".join(text_of(log) for log in logs[:2]) or workers[0].poll() is not None, "nobody joined")
        workers[1].kill()
        require(workers[0].wait(120) == 0 and workers[2].wait(120) == 0, "the run failed:", *map(text_of, logs[:3]))
    check("joined", logs[:3])


def another_user_at_local_names():
    if os.geteuid() != 0:
        return print("another user: only root can become one; left out")
    run = train("-n", "3", "--out", "local", log="local.log")
    wait_until(lambda: steps_of("local") > 0, "the run did not begin")
    names = names_of_runs()
    require(names, "no local names")
    with Attackers(2, connect_to_names, names):
        time.sleep(0.5)
        worker = int(subprocess.check_output(["pgrep", "-P", str(run.pid)], text=True).split()[-1])
        os.kill(worker, signal.SIGKILL)
        require(run.wait(120) == 0, "the run failed:", text_of("local.log"))
    require("(process %d" % worker in text_of("local.log"), "the loss was not noticed:", text_of("local.log"))
    check("local", ["local.log"])


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    os.environ["XDG_CONFIG_HOME"] = folder
    with open("data.csv", "w") as file:
        file.write("a,b,kind\n" + "".join(f"{i * 7919 % 101},{i * 104729 % 97},{'xy'[i * 31 % 2]}\n" for i in range(400)))
    with open("run.toml", "w") as file:
        file.write(CONFIG)
    subprocess.run([ARTEL, "train", "run.toml", "--out", "undisturbed"], check=True, capture_output=True)
    for attack in (strangers_at_tcp_doors, another_user_at_local_names):
        begin = time.monotonic()
        attack()
        print(f"{attack.__name__}: {time.monotonic() - begin:.1f} s", flush=True)
