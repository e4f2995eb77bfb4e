"""A share of one core for some processes: a control group of Linux, of version 1 or 2. Needs root."""
import os

PERIOD_MICROSECONDS = 10_000  # short compared with a step, so that each is slowed alike


class Quota:
    """A context; `command(words)` runs words, and everything they start, with this share of a core."""

    def __init__(self, share):
        self.quota = int(share * PERIOD_MICROSECONDS)
        version_2 = os.path.exists("/sys/fs/cgroup/cgroup.controllers")
        self.folder = os.path.join("/sys/fs/cgroup" if version_2 else "/sys/fs/cgroup/cpu", f"artel{os.getpid()}")
        self.settings = {"cpu.max": f"{self.quota} {PERIOD_MICROSECONDS}"} if version_2 else {
            "cpu.cfs_period_us": PERIOD_MICROSECONDS, "cpu.cfs_quota_us": self.quota}

    def __enter__(self):
        os.mkdir(self.folder)
        for name, value in self.settings.items():
            with open(os.path.join(self.folder, name), "w") as file:
                file.write(str(value))
        return self

    def __exit__(self, *_):
        os.rmdir(self.folder)

    def command(self, words):
        return ["bash", "-c", 'echo $$ >"$0/cgroup.procs" && exec "$@"', self.folder, *words]
