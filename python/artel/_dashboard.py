"""`artel.dashboard`: the program's dashboard next to a Python program."""

import os
import re
import socket
import subprocess
import sys
import threading

from artel import _artel


class Dashboard:
    """A dashboard in a separate process, which runs until `close` or the end of the program."""

    def __init__(self, folder, port):
        command = [sys.executable, "-m", "artel._dashboard", str(folder), "--port", str(port)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         stderr=subprocess.STDOUT, text=True)
        lines = []
        for line in self._process.stdout:
            lines.append(line.strip())
            if found := re.search(r"https?://\S+", line):
                self.url = found[0]
                return
        raise _artel.Error("the dashboard did not start: "
                           + " ".join(lines).removeprefix("artel: error: "))

    def close(self):
        """Stops the dashboard."""
        self._process.terminate()
        self._process.wait()
        self._process.stdin.close()
        self._process.stdout.close()

    def _repr_html_(self):
        return f'<a href="{self.url}" target="_blank">dashboard at {self.url}</a>'

    def __repr__(self):
        return f"artel.Dashboard({self.url!r})"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def dashboard(folder="runs", port=None):
    """Starts a dashboard for the runs in a folder. Its address is the `url` of the result."""
    if port is None:
        with socket.socket() as listening:
            listening.bind(("127.0.0.1", 0))
            port = listening.getsockname()[1]
    return Dashboard(folder, port)


def _end_with_the_program():
    """Ends this process with its parent: standard input ends then, even after a signal."""
    sys.stdin.buffer.read()
    os._exit(0)


if __name__ == "__main__":
    from artel.__main__ import main

    threading.Thread(target=_end_with_the_program, daemon=True).start()
    main(["dashboard", *sys.argv[1:]])
