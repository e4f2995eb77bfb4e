"""Shows progress in notebooks, where standard output does not appear in the cell."""

import codecs
import contextlib
import os
import re
import sys
import termios
import threading
import time
import tty

_SECONDS = 0.5  # between two views of the progress
_LINE_END = re.compile(r"\r|\n|\x1b\[K")
_EPOCH = re.compile(r"^epoch \d+/\d+: .*")
_NUMBER = re.compile(r"(test loss|loss) ([-+.e\d]+)")


def _shell():
    """The current notebook, or None outside notebooks."""
    module = sys.modules.get("IPython")
    shell = module.get_ipython() if module else None
    return shell if shell is not None and hasattr(shell, "kernel") else None


@contextlib.contextmanager
def progress():
    """During training, shows the workers' last line of output and the loss curves in the cell."""
    if _shell() is None:
        yield
        return
    sys.stdout.flush()
    read, write = _terminal()
    kept = [os.dup(stream) for stream in (1, 2)]
    for stream in (1, 2):
        os.dup2(write, stream)
    os.close(write)
    reader = threading.Thread(target=_show, args=(read,))
    reader.start()
    try:
        yield
    finally:
        for stream, before in zip((1, 2), kept):
            os.dup2(before, stream)
            os.close(before)
        reader.join()


def _terminal():
    """Both ends of a terminal, on which the program redraws its line of progress all the time."""
    read, write = os.openpty()
    tty.setraw(write)  # lines end as they were written
    termios.tcsetwinsize(write, (24, 120))
    return read, write


def _texts(terminal):
    """What was written to a terminal, line by line, each time that it is redrawn."""
    rest = ""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    with contextlib.suppress(OSError), open(terminal, "rb", buffering=0) as written:
        while piece := written.read(65536):  # an OSError: the other end was closed
            *lines, rest = _LINE_END.split(rest + decoder.decode(piece))
            yield from filter(None, lines)
    if rest:
        yield rest


def _show(terminal):
    from IPython.display import HTML, display

    shown, due = None, 0.0
    text, curves = "", {}

    def show():
        nonlocal shown
        page = HTML(f"<pre>{_escaped(text)}</pre>" + _svg(curves))
        if shown is None:  # a quiet training shows nothing
            shown = display(page, display_id=True)
        else:
            shown.update(page)

    for text in _texts(terminal):
        if _EPOCH.match(text):
            print(text)
            for name, value in _NUMBER.findall(text):
                curves.setdefault(name, []).append(float(value))
        if time.monotonic() >= due:
            show()
            due = time.monotonic() + _SECONDS
    if text:
        show()


def _escaped(text):
    return text.replace("&", "&amp;").replace("<", "&lt;")


def _svg(curves, width=320, height=120):
    """A plot of the loss by epoch: training in blue, tests in orange."""
    values = [value for curve in curves.values() for value in curve]
    if not values:
        return ""
    low, high = min(values), max(values)
    lines = ""
    for name, curve in curves.items():
        colour = "#ff7f0e" if name.startswith("test") else "#1f77b4"
        points = " ".join(f"{width * (i + 0.5) / len(curve):.1f},"
                          f"{5 + (height - 10) * (high - value) / (high - low or 1):.1f}"
                          for i, value in enumerate(curve))
        lines += f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{points}"/>'
    return f'<svg width="{width}" height="{height}" role="img"><title>loss by epoch</title>{lines}</svg>'
