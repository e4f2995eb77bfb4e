"""terminal.py COLUMNS TEXT COMMAND...: runs a command in a terminal of that width, types TEXT when it is asked something ("[y/N]"),
and prints what was on the screen; ends with its exit code."""
import fcntl
import os
import pty
import select
import struct
import sys
import termios
import time

columns, text, command = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
process, terminal = pty.fork()
if process == 0:
    os.execvp(command[0], command)
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
shown, typed, deadline = b"", False, time.monotonic() + 60
while time.monotonic() < deadline:
    if not select.select([terminal], [], [], 1)[0]:
        continue
    try:
        data = os.read(terminal, 65536)
    except OSError:  # it has ended
        break
    if not data:
        break
    shown += data
    if b"[y/N]" in shown and not typed:
        os.write(terminal, text.encode() + b"\n")
        typed = True
else:
    os.kill(process, 9)
sys.stdout.buffer.write(shown.replace(b"\r\n", b"\n"))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))
