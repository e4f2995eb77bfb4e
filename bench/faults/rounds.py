"""A run of `artel train -n N` with faults, and what must be true when it has ended."""
import collections
import contextlib
import json
import os
import re
import resource
import signal
import subprocess
import time
from pathlib import Path

DISK = Path("disk")  # small, if it could be mounted
MEMORY = Path("/sys/fs/cgroup/memory" if Path("/sys/fs/cgroup/memory").is_dir() else "/sys/fs/cgroup")
SLOW = 5  # seconds after a kill that are told


class Fault(Exception):
    """What should not have happened."""


def newest_step(folder):
    steps = [int(name[5:]) for name in os.listdir(folder / "checkpoints") if name.startswith("step-") and name[5:].isdigit()] \
        if (folder / "checkpoints").is_dir() else []
    return max(steps, default=0)


def lives(process):
    """Whether it has not ended; the dead child of another process counts as ended."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    return False


class Round:
    """One run with its workers."""

    def __init__(self, arguments, network, number, rng):
        self.arguments, self.rng = arguments, rng
        self.config = os.path.abspath(arguments.config) if arguments.config else f"{network}.toml"
        self.folder = (DISK if DISK.is_mount() else Path()) / f"run-{number}"
        self.log = open(f"log-{number}", "w+")
        self.options = ["--set", "train.steps=100000000", "--set", "train.save_every=2", "--set",
                        f"cluster.patience={arguments.stall}"]
        for setting in arguments.set:
            self.options += ["--set", setting]
        if arguments.servers:
            self.options += ["--servers", str(arguments.servers), "--set", "cluster.replicas=2"]
        self.joined, self.seen, self.times, self.usual = [], set(), [], []
        self.exhausted = set()  # processes that got no more memory: libraries may crash then
        self.stops_apart = False  # a worker may have found itself on the smaller side, or without memory
        self.kinds = collections.Counter()
        self.begin()
        try:
            if self.rng.random() < 0.7:
                self.kill_at_the_start()
            self.wait_for_step(1)
            self.wait_until(lambda: len(self.workers()) == arguments.workers, "the list of workers")
            self.next_checkpoint(self.usual)
        except Exception:
            self.clean_up()
            raise

    def begin(self):
        self.launcher = self.start("--out", str(self.folder), "-n", str(self.arguments.workers), "--set",
                                   "cluster.restarts=1000", "--set", f"cluster.transport={self.arguments.transport}")

    def children(self):
        """Processes that the launcher has started, by their first rank."""
        found = {}
        for process in map(int, subprocess.run(["pgrep", "-P", str(self.launcher.pid)], capture_output=True, text=True).stdout.split()):
            with contextlib.suppress(OSError, ValueError, KeyError):  # without a rank until it runs the program
                words = dict(word.split("=", 1) for word in Path(f"/proc/{process}/environ").read_text().split("\0") if "=" in word)
                found[int(words["ARTEL_RANK"])] = process
        return found

    def kill_at_the_start(self):
        """Within the first 100 ms."""
        time.sleep(self.rng.random() * 0.1)
        children = sorted(self.children().values())
        if children:
            self.signal(self.rng.choice(children), signal.SIGKILL)
            self.kinds["killed at the start"] += 1

    def start(self, *words):
        return subprocess.Popen([self.arguments.artel, "train", self.config, *self.options, *words], stdout=self.log,
                                stderr=self.log)

    def fail(self, what):
        self.log.flush()
        self.log.seek(0)
        raise Fault(f"{what}; the run in {self.folder} said:\n{self.log.read()}")

    def workers(self):
        """Processes of the present workers, by number."""
        with contextlib.suppress(OSError, ValueError):
            found = {w["worker"]: w["process"] for w in json.loads((self.folder / "workers.json").read_text())["workers"]}
            self.seen.update(found.values())
            return found
        return {}

    def wait_until(self, condition, what):
        end = time.monotonic() + self.arguments.patience
        while not condition():
            if self.launcher.poll() is not None and not any(process.poll() is None for process in self.joined):
                self.fail(f"the run has ended with code {self.launcher.returncode}")
            if time.monotonic() > end:
                self.fail(f"{what} did not happen within {self.arguments.patience} s")
            time.sleep(0.001)

    def wait_for_step(self, step):
        self.wait_until(lambda: newest_step(self.folder) >= step, f"step {step}")

    def next_checkpoint(self, times=None):
        """Waits until there is one that is not there now."""
        begin = time.monotonic()
        self.wait_for_step(newest_step(self.folder) + 1)
        if times is not None:
            times.append(time.monotonic() - begin)

    def living(self):
        return {number: process for number, process in self.workers().items() if lives(process)}

    def settle(self):
        """Where each worker has only a part, one may be lost at a time: until all are there again and have copies."""
        if self.arguments.set:
            self.wait_until(lambda: len(self.living()) >= self.arguments.workers, "replacing a worker")
            for _ in range(4):
                self.next_checkpoint()

    def kill(self):
        workers = sorted(self.living())
        count = 2 if len(workers) > 2 and not self.arguments.set and self.rng.random() < 0.25 else 1
        if len(workers) <= count:
            return self.join()
        killed = set()
        for number in self.rng.sample(workers, count):
            with contextlib.suppress(ProcessLookupError, KeyError):
                killed.add(self.workers()[number])
                os.kill(self.workers()[number], signal.SIGKILL)
        self.next_checkpoint(self.times)
        if self.times[-1] > SLOW:
            lines = [line for line in Path(self.log.name).read_text().splitlines() if not line.startswith("epoch")]
            print(f"{self.times[-1]:.1f} s after a kill of {sorted(killed)}, {self.folder} said last:\n  " + "\n  ".join(lines[-12:]), flush=True)
        self.kinds["killed"] += count
        # Only this driver restarts workers that have joined.
        if self.arguments.set and killed & {process.pid for process in self.joined}:
            self.join()
        else:
            self.settle()

    def kill_server(self):
        """Kills one, and waits for the next one at its place: one copy at a time may be lost."""
        servers = self.servers()
        if len(servers) < 2:
            return self.kill()
        joins = self.count_joins()
        self.seen.update(servers)
        self.signal(self.rng.choice(servers), signal.SIGKILL)
        self.next_checkpoint(self.times)
        self.wait_until(lambda: self.count_joins() > joins, "joining of a server")
        self.next_checkpoint()
        self.kinds["server killed"] += 1

    def count_joins(self):
        return len(re.findall(r"server \d+ \(process \d+ on host [^)]*\) joins", Path(self.log.name).read_text()))

    def pause(self):
        process = self.rng.choice(sorted(self.living().values()))
        self.signal(process, signal.SIGSTOP)
        time.sleep(self.rng.random() * 0.4 * self.arguments.stall)
        self.signal(process, signal.SIGCONT)
        self.next_checkpoint()
        self.kinds["stopped for a moment"] += 1

    def stall(self):
        workers = self.living()
        if len(workers) < 3:
            return self.join()
        number = self.rng.choice(sorted(workers))
        self.signal(workers[number], signal.SIGSTOP)
        self.wait_until(lambda: number not in self.workers(), f"giving up worker {number}")
        self.next_checkpoint()
        self.signal(workers[number], signal.SIGCONT)
        self.wait_until(lambda: workers[number] in self.workers().values(), f"rejoining of process {workers[number]}")
        self.next_checkpoint()
        self.settle()
        self.kinds["given up, rejoined"] += 1

    def stall_several(self):
        """Worker 0 and others are stopped together for about as long as the others wait for them, and wake up together."""
        workers = list(self.living().values())
        if len(workers) < 3:
            return self.join()
        stopped = [workers[0], *self.rng.sample(workers[1:], self.rng.randrange(1, len(workers) - 1))]
        self.stop_together(stopped)
        self.kinds["stopped together"] += len(stopped)

    def stall_with_server(self):
        """A server is stopped together with worker 0 or another worker."""
        workers, servers = list(self.living().values()), self.servers()
        if len(workers) < 3 or len(servers) < 2:
            return self.kill()
        stopped = [self.rng.choice([workers[0], self.rng.choice(workers)])]
        server = self.rng.choice(servers)
        self.seen.update(servers)
        self.stop_together(stopped, [server])
        self.wait_until(lambda: self.count_servers() == self.arguments.servers, f"rejoining of server {server}")
        self.next_checkpoint()
        self.kinds["stopped with a server"] += 2

    def stop_together(self, workers, servers=()):
        present = len(self.living())
        self.stops_apart = self.stops_apart or 2 * len(workers) >= present
        for process in [*workers, *servers]:
            self.signal(process, signal.SIGSTOP)
        time.sleep(self.arguments.stall * self.rng.choice([0.4, 0.9, 1.3]) + self.rng.random() * 2.2)
        for process in [*workers, *servers]:
            self.signal(process, signal.SIGCONT)
        self.next_checkpoint()
        self.wait_until(lambda: all(not lives(p) or p in self.workers().values() for p in workers), f"rejoining of {workers}")
        self.next_checkpoint()

    def servers(self):
        return [process for rank, process in self.children().items() if rank >= self.arguments.workers]

    def count_servers(self):
        """Servers in the run, by the last line about a change."""
        counts = re.findall(r"continuing with .* and (\d+) server", Path(self.log.name).read_text())
        return int(counts[-1]) if counts else self.arguments.servers

    def kill_writers(self):
        """The worker that writes the metrics is killed, and then its successor."""
        if len(self.living()) < 4 or self.arguments.set:
            return self.kill()
        for _ in range(self.rng.choice([2, 3])):
            workers = self.living()
            if len(workers) > 1:
                self.signal(next(iter(workers.values())), signal.SIGKILL)
                self.kinds["writer killed"] += 1
                time.sleep(self.rng.random() * 0.3)
        self.next_checkpoint()

    def exhaust(self):
        """A worker gets no more memory than it has. It may need none for a moment, but not for long."""
        workers = self.living()
        if len(workers) < 3 or self.arguments.set:
            return self.kill()
        process = self.rng.choice(sorted(workers.values()))
        self.exhausted.add(process)
        with contextlib.suppress(OSError, ValueError):
            pages = int(Path(f"/proc/{process}/statm").read_text().split()[0])
            bytes_now = pages * resource.getpagesize()
            resource.prlimit(process, resource.RLIMIT_AS, (bytes_now, resource.RLIM_INFINITY))
            end = time.monotonic() + 2
            while lives(process) and time.monotonic() < end:
                time.sleep(0.01)
            if lives(process):
                resource.prlimit(process, resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        self.stops_apart = True
        self.next_checkpoint()
        self.kinds["without memory"] += 1

    def exhaust_group(self):
        """The kernel kills a worker because its group of processes has no memory left."""
        workers = self.living()
        if len(workers) < 3 or not MEMORY.is_dir() or not os.access(MEMORY, os.W_OK):
            return self.kill()
        group = MEMORY / f"artelf{os.getpid()}"
        process = self.rng.choice(sorted(workers.values()))
        group.mkdir(exist_ok=True)
        # It keeps the memory that it has.
        (group / ("memory.limit_in_bytes" if MEMORY.name == "memory" else "memory.max")).write_text("65536")
        (group / "cgroup.procs").write_text(str(process))
        end = time.monotonic() + 3
        while lives(process) and time.monotonic() < end:
            time.sleep(0.01)
        self.kinds["killed" if lives(process) else "killed by a memory limit"] += 1
        self.signal(process, signal.SIGKILL)  # it needed no more memory
        self.wait_until(lambda: self.removed(group), "the end of a group of processes")
        self.next_checkpoint()
        # Only this driver restarts workers that have joined.
        if self.arguments.set and process in {each.pid for each in self.joined}:
            self.join()
        else:
            self.settle()

    @staticmethod
    def removed(group):
        """Removes a group of processes, which is busy until its processes have ended."""
        with contextlib.suppress(OSError):
            group.rmdir()
        return not group.exists()

    def fill(self):
        """Nothing can be written for a moment: existing files stay, and the run continues."""
        if not DISK.is_mount():
            return self.kill()
        before = newest_step(self.folder)
        with contextlib.suppress(OSError), open(DISK / "ballast", "wb", buffering=0) as ballast:
            while True:
                ballast.write(bytes(1 << 20))
        time.sleep(self.rng.random() * 0.5)
        if newest_step(self.folder) < before:
            self.fail(f"the checkpoint of step {before} is gone")
        (DISK / "ballast").unlink()
        self.next_checkpoint()
        self.next_checkpoint()
        self.kinds["disk filled"] += 1

    def leave(self):
        workers = self.living()
        if len(workers) < 3:
            return self.join()
        number = self.rng.choice(sorted(workers))
        if self.rng.random() < 0.5:
            self.signal(workers[number], signal.SIGTERM)
            self.wait_until(lambda: not lives(workers[number]), f"leaving of worker {number}")
        else:
            done = subprocess.run([self.arguments.artel, "leave", str(self.folder), str(number)], capture_output=True, text=True)
            if done.returncode != 0 and lives(workers[number]):
                self.fail(f"leaving of worker {number}: {done.stdout}{done.stderr}")
        self.next_checkpoint()
        self.kinds["left"] += 1
        if self.arguments.set:
            self.join()

    def join(self):
        if len(self.living()) >= (5 if self.arguments.set else 6):
            return self.kill()
        process = self.start("--join", str(self.folder))
        self.joined.append(process)
        self.wait_until(lambda: process.pid in self.workers().values() or process.poll() is not None, "joining")
        if process.poll() is not None:
            self.fail(f"joining: exit code {process.returncode}")
        self.next_checkpoint()
        self.settle()
        self.kinds["joined"] += 1

    @staticmethod
    def signal(process, number):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, number)

    def disturb(self):
        time.sleep(self.rng.random() * 0.1)
        faults = {self.kill: 40, self.pause: 10, self.stall: 6, self.stall_several: 8, self.leave: 10, self.join: 20, self.fill: 4,
                  self.kill_writers: 8, self.exhaust: 6, self.exhaust_group: 6}
        if self.arguments.servers:
            faults[self.kill_server] = 35
            faults[self.stall_with_server] = 12
        if self.arguments.set:  # one at a time, or parts of the state are lost
            del faults[self.stall_several]
        self.rng.choices(list(faults), list(faults.values()))[0]()

    def stop(self):
        """Stops the run as its user or a cluster's manager would. Returns the signal, and the processes that got it if the launcher did not."""
        how = self.rng.choice(["interrupt", "workers", "everything"])
        # A process that the launcher restarts now would look for a run that has ended, for as long as cluster.join_timeout.
        end = time.monotonic() + 5
        while time.monotonic() < end:
            started = {process for rank, process in self.children().items() if rank < self.arguments.workers}
            if started <= set(self.living().values()):
                break
            time.sleep(0.05)
        if how == "workers" and len(self.children()) < self.arguments.workers + self.arguments.servers:
            how = "everything"
        if how == "interrupt":
            for process in [self.launcher, *self.joined]:
                if process.poll() is None:
                    process.send_signal(signal.SIGINT)
            return signal.SIGINT, None
        self.kinds["SIGTERM to all"] += 1
        workers = set(self.living().values()) | set(self.children().values())
        if how == "everything":
            workers.add(self.launcher.pid)
        workers |= {p.pid for p in self.joined if p.poll() is None}
        for process in workers:
            self.signal(process, signal.SIGTERM)
        return signal.SIGTERM, workers if how == "workers" else None

    def wait_for_end(self, stopped):
        """Waits for all processes. A worker that the launcher restarts after `stopped` got SIGTERM gets it, too. Returns exit codes."""
        end = time.monotonic() + self.arguments.patience
        processes = [self.launcher, *self.joined]
        while any(process.poll() is None for process in processes):
            if time.monotonic() > end:
                self.fail("the run does not end")
            for process in set(self.children().values()) - stopped if stopped else ():
                stopped.add(process)
                self.signal(process, signal.SIGTERM)
            time.sleep(0.02)
        return [process.returncode for process in processes]

    def end(self):
        self.next_checkpoint(self.usual)
        number, processes = self.stop()
        stopped = 128 + number
        code, *codes = self.wait_for_end(processes)
        codes = [each for each, process in zip(codes, self.joined) if process.pid not in self.exhausted]
        # The reporting worker says that it was stopped; a worker that was killed or has joined shows it by its exit code.
        if code not in ((*self.codes_allowed(), 128 + signal.SIGKILL) if self.joined else (stopped,)):
            self.fail(f"the run has ended with code {code}")
        if any(each not in self.codes_allowed() for each in codes):
            self.fail(f"workers that joined have ended with the codes {codes}")
        for process in self.seen:
            if lives(process):
                self.fail(f"process {process} is left over")
        left = [name for name in os.listdir(self.folder / "checkpoints") if name.endswith(".new")]
        left += [name for name in os.listdir(self.folder) if name == "workers.json"]
        if left:
            self.fail(f"left over: {left}")
        lines = [json.loads(line) for line in open(self.folder / "metrics.jsonl")]
        steps = [line["step"] for line in lines if "train/loss" in line]
        if steps != list(range(1, len(steps) + 1)):
            self.fail(f"metrics: step {next(i + 1 for i, s in enumerate(steps) if s != i + 1)} is missing or there twice")
        if len(steps) != newest_step(self.folder):
            self.fail(f"the last checkpoint is of step {newest_step(self.folder)}, but {len(steps)} steps were finished")
        return self.compare()

    def codes_allowed(self):
        return (0, 128 + signal.SIGINT, 128 + signal.SIGTERM, -signal.SIGKILL, *((1,) if self.stops_apart else ()))

    def compare(self):
        steps = newest_step(self.folder)
        one = Path(f"{self.folder.name}-undisturbed")
        same = [word for setting in self.arguments.same for word in ("--set", setting)]
        for command in (["train", self.config, "--out", str(one), "--set", f"train.steps={steps}", *same],
                        ["verify", str(one), str(self.folder)]):
            done = subprocess.run([self.arguments.artel, *command], capture_output=True, text=True)
            if done.returncode != 0:
                self.fail(f"after {steps} steps: {done.stdout}{done.stderr}")
        return steps

    def clean_up(self):
        for process in self.seen:
            self.signal(process, signal.SIGCONT)
        for process in [self.launcher, *self.joined]:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(15)
            if process.poll() is None:
                process.kill()
        self.log.close()
