"""Two emulated hosts: network namespaces with a link of a given speed between them. Needs root."""
import os
import subprocess


class TwoHosts:
    """A context; `command(host, words)` runs words on host 0 or 1; `address` is that of host 0."""

    address = "10.96.0.1"
    interface = "v0"

    def __init__(self, rate):
        self.rate = rate
        self.names = [f"artels{os.getpid()}{host}" for host in "ab"]

    def __enter__(self):
        for name in self.names:
            self._run("ip", "netns", "add", name)
        self._run("ip", "link", "add", "v0", "netns", self.names[0], "type", "veth", "peer", "name", "v0", "netns",
                  self.names[1])
        for host, name in enumerate(self.names):
            inside = ("ip", "netns", "exec", name)
            self._run(*inside, "ip", "addr", "add", f"10.96.0.{host + 1}/24", "dev", "v0")
            for device in ("lo", "v0"):
                self._run(*inside, "ip", "link", "set", device, "up")
            self._run(*inside, "tc", "qdisc", "add", "dev", "v0", "root", "tbf", "rate", self.rate, "burst", "256kb",
                      "latency", "100ms")
        return self

    def __exit__(self, *_):
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], check=False)

    def command(self, host, words):
        name = self.names[host]
        return ["ip", "netns", "exec", name, "unshare", "--uts", "bash", "-c", 'hostname "$0" && exec "$@"', name, *words]

    @staticmethod
    def _run(*words):
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
