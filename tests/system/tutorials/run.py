"""Does what a tutorial says: run.py ARTEL PAGE.

Blocks marked `toml` and `python` become the file that the text before them names last; `sh` blocks, and the lines that
begin with `$ ` in unmarked ones, are run in order in a new folder, which is also the home folder. What a page shows
below a command must resemble what is printed: the first words of each line, up to a number or a colon, have to be in
it. Training takes fewer steps than the page says, so numbers differ.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

FEWER = [(r"^epochs = \d+", "epochs = 2"), (r"^steps = \d+", "steps = 20"), (r"\b300\b", "40")]
LICENCES = "/usr/share/common-licenses/"
SECONDS = 120  # of one command, on a machine with other work to do


def blocks_of(page):
    """(the text before it, its language, its lines) of each fenced block."""
    text, block, language = [], None, ""
    for line in page.splitlines():
        if line.startswith("```") and block is None:
            block, language = [], line[3:].strip()
        elif line.startswith("```"):
            yield "\n".join(text), language, block
            text, block = [], None
        elif block is None:
            text.append(line)
        else:
            block.append(line)


def save(text, lines):
    names = re.findall(r"`(?:python3 )?([\w.]+\.(?:toml|py))`", text)
    if not names:
        sys.exit(f"no name of a file before: {lines[0]}")
    content = "\n".join(lines) + "\n"
    for pattern, fewer in FEWER:
        content = re.sub(pattern, fewer, content, flags=re.MULTILINE)
    with open(names[-1], "w") as file:
        file.write(content)
    if names[-1].endswith(".py"):
        run(f"python3 {names[-1]}")


def run(command):
    done = subprocess.run(["bash", "-euc", command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", timeout=SECONDS)
    if done.returncode != 0:
        sys.exit(f"{command}\ngave {done.returncode}:\n{done.stdout}")
    return done.stdout


def beginning(line):
    """What a line of output begins with, whatever the numbers are."""
    return " ".join(re.split(r"[\d:]", line, maxsplit=1)[0].split()[:2])


def follow(lines):
    """Runs the commands of a block, and compares with what is shown below each."""
    command, printed = "", ""
    for line in lines:
        if line.startswith("$ "):
            command = line[2:]
            printed = run(command)
        elif command and set(line) - set("- ."):
            words = r"\s+".join(re.escape(word) for word in beginning(line).split())
            if not re.search(words, printed):
                sys.exit(f"{command}\nprints no line like '{line}', but:\n{printed}")


def main():
    artel, page = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    with open(page) as file:
        blocks = list(blocks_of(file.read()))
    if any(LICENCES in line for _, _, lines in blocks for line in lines) and not os.path.isdir(LICENCES):
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.makedirs("bin")
        os.symlink(artel, "bin/artel")
        os.environ.update(PATH=f"{folder}/bin:{os.environ['PATH']}", HOME=folder, LC_ALL="C",
                          ARTEL_DATA=f"{folder}/cache")
        for text, language, lines in blocks:
            if language in ("toml", "python"):
                save(text, lines)
            elif language == "sh":
                run("\n".join(lines))
            else:
                # New pictures are the reader's own.
                if os.path.isdir("shapes") and not os.path.isdir("new"):
                    os.makedirs("new")
                    shutil.copy("shapes/disc/0.png", "new/a.png")
                    shutil.copy("shapes/ring/0.png", "new/b.png")
                follow(lines)


main()
