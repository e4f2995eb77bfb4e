"""HTML representations of runs, networks, and tables for notebooks."""

from html import escape

import numpy as np


def table(header, rows):
    """An HTML table of texts and numbers."""
    head = "".join(f"<th>{escape(str(cell))}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(_text(cell))}</td>" for cell in row) + "</tr>"
                   for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _text(value):
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def run(run):
    """The result of a run, its curves, and its confusion matrix."""
    if run.folder is None:
        return f"<b>{escape(repr(run))}</b>"
    parts = [f"<b>{escape(run.folder.name)}</b>"]
    if (run.folder / "summary.json").exists():
        numbers = [(name, value) for name, value in run.summary.items()
                   if isinstance(value, (int, float, str))]
        parts.append(table(("", "value"), numbers))
    for picture in ("curves.svg", "confusion.svg"):
        if (run.folder / picture).exists():
            parts.append((run.folder / picture).read_text(encoding="utf-8"))
    return "".join(parts)


def confusion(matrix, names=()):
    """A confusion matrix with labels as rows and answers as columns. Larger counts are darker."""
    matrix = np.asarray(matrix)
    names = list(names) or [str(i) for i in range(len(matrix))]
    head = "<th></th>" + "".join(f"<th>{escape(name)}</th>" for name in names)
    body = ""
    for name, counts in zip(names, matrix):
        shares = counts / max(1, counts.sum())
        cells = "".join(f'<td style="background:rgba(31,119,180,{share:.2f})">{count:.0f}</td>'
                        for count, share in zip(counts, shares))
        body += f"<tr><th>{escape(name)}</th>{cells}</tr>"
    return f"<table><tr>{head}</tr>{body}</table>"
