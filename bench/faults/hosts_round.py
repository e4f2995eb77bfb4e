"""The same on emulated hosts, whose wires can be cut."""
import os
import signal
import subprocess
import time

from rounds import Round


class HostsRound(Round):
    """Each worker on an emulated host of its own, with a switch between them; only this driver restarts dead ones."""

    def begin(self):
        self.id, self.port = f"artelf{os.getpid()}", 29000 + self.rng.randrange(900)
        self.on_host = {}
        self.options += ["--set", f"cluster.workers=2..{self.arguments.workers}"]
        self.run("ip", "netns", "add", f"{self.id}sw")
        self.in_host("sw", "ip link add br0 type bridge && ip link set br0 up")
        for i in range(self.arguments.workers):
            self.run("ip", "netns", "add", f"{self.id}{i}")
            self.run("ip", "link", "add", "v0", "netns", f"{self.id}{i}", "type", "veth", "peer", "name", f"p{i}", "netns", f"{self.id}sw")
            self.in_host(i, f"ip addr add 10.97.0.{i + 1}/24 dev v0 && ip link set v0 up && ip link set lo up")
            self.in_host("sw", f"ip link set p{i} master br0 && ip link set p{i} up")
        first = ("--join", f"10.97.0.1:{self.port}", "--token", "secret", "--out", str(self.folder))
        self.launcher = self.start_on(0, *first)
        for i in range(1, self.arguments.workers):
            self.start_on(i, *first)

    @staticmethod
    def run(*words):
        subprocess.run(words, check=True)

    def in_host(self, host, command):
        self.run("ip", "netns", "exec", f"{self.id}{host}", "sh", "-c", command)

    def start_on(self, host, *words):
        process = subprocess.Popen(["ip", "netns", "exec", f"{self.id}{host}", "unshare", "--uts", "sh", "-c",
                                    'hostname "$0" && exec "$@"', f"{self.id}{host}", self.arguments.artel, "train", self.config,
                                    *self.options, *words], stdout=self.log, stderr=self.log)
        self.on_host[host] = process
        self.joined.append(process)
        return process

    def replace(self, host):
        """Starts another worker there, and waits until it has joined."""
        process = self.start_on(host, "--join", str(self.folder))
        self.wait_until(lambda: process.pid in self.workers().values() or process.poll() is not None, "joining")
        if process.poll() is not None:
            self.fail(f"joining: exit code {process.returncode}")
        self.next_checkpoint()

    def kill(self):
        host = self.rng.randrange(self.arguments.workers)
        self.on_host[host].kill()
        self.on_host[host].wait()
        self.next_checkpoint(self.times)
        self.kinds["killed"] += 1
        self.replace(host)

    def cut(self):
        host = self.rng.randrange(self.arguments.workers)
        self.in_host("sw", f"ip link set p{host} down")
        process = self.on_host[host]
        self.wait_until(lambda: process.pid not in self.workers().values(), f"giving up host {host}")
        self.next_checkpoint()
        self.wait_until(lambda: process.poll() is not None, f"the end of what was cut off (host {host})")
        if process.returncode != 1:
            self.fail(f"the worker that was cut off has ended with code {process.returncode}")
        self.in_host("sw", f"ip link set p{host} up")
        self.kinds["cut off"] += 1
        self.replace(host)

    def cut_pair(self):
        """Two workers do not reach each other any more, but both reach worker 0: the one with the higher rank leaves."""
        order = list(self.workers().values())
        hosts = [host for host, process in self.on_host.items() if process.pid in order[1:]]
        if len(hosts) < 2:
            return self.kill()
        stays, leaves = sorted(self.rng.sample(hosts, 2), key=lambda host: order.index(self.on_host[host].pid))
        for host in (stays, leaves):
            self.in_host("sw", f"bridge link set dev p{host} isolated on")
        process = self.on_host[leaves]
        self.wait_until(lambda: process.poll() is not None, f"the end of what was cut off (host {leaves} from {stays})")
        if process.returncode != 1:
            self.fail(f"the worker that was cut off has ended with code {process.returncode}")
        self.next_checkpoint()
        for host in (stays, leaves):
            self.in_host("sw", f"bridge link set dev p{host} isolated off")
        self.kinds["pair cut"] += 1
        self.replace(leaves)

    def replace_ended(self):
        """Starts workers in place of those that have ended."""
        for host, process in list(self.on_host.items()):
            if process.poll() is not None:
                self.replace(host)

    def kill_at_the_start(self):
        """Within the first 100 ms. One that is not in the run after the first step is started again."""
        time.sleep(self.rng.random() * 0.1)
        host = self.rng.randrange(1, self.arguments.workers)  # the others meet at host 0
        self.on_host[host].kill()
        self.on_host[host].wait()
        self.wait_for_step(1)
        self.kinds["killed at the start"] += 1
        self.replace(host)

    def stall_several(self):
        super().stall_several()
        self.replace_ended()

    def kill_writers(self):
        """Worker 0, which writes the metrics, is killed, and then its successor."""
        if len(self.living()) < 4:
            return self.kill()
        for _ in range(2):
            self.signal(next(iter(self.living().values())), signal.SIGKILL)
            self.kinds["writer killed"] += 1
            time.sleep(self.rng.random() * 0.3)
        self.next_checkpoint()
        self.replace_ended()

    def exhaust(self):
        super().exhaust()
        self.replace_ended()

    def exhaust_group(self):
        super().exhaust_group()
        self.replace_ended()

    def disturb(self):
        time.sleep(self.rng.random() * 0.1)
        faults = {self.kill: 30, self.pause: 10, self.stall: 8, self.stall_several: 10, self.cut: 12, self.cut_pair: 12, self.kill_writers: 8,
                  self.exhaust: 5, self.exhaust_group: 5, self.fill: 4}
        self.rng.choices(list(faults), list(faults.values()))[0]()

    def codes_allowed(self):
        return (1, *super().codes_allowed())

    def clean_up(self):
        super().clean_up()
        for host in ["sw", *range(self.arguments.workers)]:
            subprocess.run(["ip", "netns", "del", f"{self.id}{host}"], check=False)
