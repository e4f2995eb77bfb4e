"""check.py ARTEL PROJECT: what the pages say exists.

Links lead to files and headings that are there, each decision has a number of its own, every command, option and
configuration key that a page mentions is known to the program, and each key opens one row of a table in all pages.

Sample outputs: a command that ends with an error of its arguments is run, and prints what the page shows. Elsewhere, each
word that a page shows occurs in a text of the program or in the command. Tutorials have a test of their own, which runs them.
"""

import pathlib
import re
import subprocess
import sys
from functools import cache

ARTEL, PROJECT = sys.argv[1], pathlib.Path(sys.argv[2])
SECTIONS = "data|model|train|distil|prune|cluster|observe"
# Words after "artel" in running text and in commands that are no commands of the program.
NO_COMMANDS = {"COMMAND", "is", "and", "has", "or", "import"}
problems = []


@cache
def help_of(*command):
    result = subprocess.run([ARTEL, *command, "--help"], capture_output=True, text=True, timeout=20)
    return result.stdout if result.returncode == 0 else ""


@cache
def commands_of(*command):
    listed = help_of(*command).partition("Subcommands:\n")[2].partition("\n\n")[0]
    return set(re.findall(r"^  (\w+) ", listed, re.M))


@cache
def known_keys():
    page = subprocess.run([ARTEL, "config", "--markdown"], capture_output=True, text=True, timeout=20, check=True).stdout
    keys = set(re.findall(rf"`((?:{SECTIONS})\.[\w.]+)`", page))
    return keys | {key.rpartition(".")[0] for key in keys}


def anchors_in(page):
    """Headings as GitHub makes anchors of them."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
    for heading in re.findall(r"^#+ (.*)$", text, re.M):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
        yield re.sub(r"[^\w\- ]", "", plain).strip().replace(" ", "-")


def check_links(page, text):
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.S)):
        if re.match(r"[a-z]+://", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists():
            problems.append(f"{page}: the link {target} leads nowhere")
        elif anchor and anchor not in set(anchors_in(file)):
            problems.append(f"{page}: {target}: no such heading")


def commands_in(text):
    """The words of each command line in code, joined where a backslash continues it."""
    code = re.findall(r"```\w*\n(.*?)```", text, re.S) + re.findall(r"`([^`\n]+)`", text)
    for block in code:
        for line in re.sub(r"\$\([^)]*\)", "", block.replace("\\\n", " ")).splitlines():
            for command in re.findall(r"(?:^|[\s;&|(])(?:\w+/)*artel ([a-z][^;&|#`\n]*)", line):
                yield command.split()


def check_command(page, words):
    name = words[0]
    if not re.fullmatch(r"[a-z]+", name) or name in NO_COMMANDS:
        return
    if name not in commands_of():
        problems.append(f"{page}: there is no command 'artel {name}'")
        return
    command = [name]
    while len(words) > len(command) and words[len(command)] in commands_of(*command):
        command.append(words[len(command)])
    known = help_of(*command) + (help_of(name) if len(command) > 1 else "")
    for word in words[len(command):]:
        option = re.match(r"(--[a-z][\w-]*|-[a-zA-Z]$)", word)
        if word == "--":
            return
        if option and not re.search(rf"(?<![\w-]){re.escape(option[1])}(?![\w-])", known):
            problems.append(f"{page}: 'artel {' '.join(command)}' has no option {option[1]}")


def check_keys(page, text):
    for code in re.findall(r"`([^`\n]+)`", text):
        for key in re.findall(rf"(?<![\w./\"-])((?:{SECTIONS})\.[a-z_]+(?:\.[a-z_]+)*)(?![\w(/-])", code):
            parts = key.split(".")
            if re.search(r"\.(toml|h|cc|csv|json|png|svg|py|md|npz|txt|safetensors)$", key):
                continue
            if not any(".".join(parts[:n]) in known_keys() for n in range(2, len(parts) + 1)):
                problems.append(f"{page}: there is no key {key}")


def check_decisions():
    numbers = {}
    for page in sorted((PROJECT / "docs/decisions").glob("*.md")):
        numbers.setdefault(page.name[:4], []).append(page.name)
    for number, names in numbers.items():
        if len(names) > 1:
            problems.append(f"docs/decisions: {' and '.join(names)} have the same number")


def samples_in(text):
    """Commands after a "$ " in a block of code, each with the lines below it."""
    for language, block in re.findall(r"^```(\w*)\n(.*?)^```", text, re.M | re.S):
        for sample in re.findall(r"^\$ (.*?)(?=^\$ |\Z)", "" if language else block, re.M | re.S):
            command, _, output = sample.partition("\n")
            yield command, output


@cache
def words_of_program():
    """The words of all texts in the sources: of messages, titles of columns, and names."""
    words = set()
    for file in (PROJECT / "artel").glob("**/*.[ch]*"):
        for literal in re.findall(r'"((?:[^"\\\n]|\\.)*)"', file.read_text()):
            words.update(re.findall(r"[a-z]+", literal.lower()))
    return words


def check_sample(page, command, output):
    if output.startswith("artel: error: [--"):
        done = subprocess.run([ARTEL, *command.split()[1:]], cwd=PROJECT, capture_output=True, text=True, timeout=20)
        if done.stderr != output:
            problems.append(f"{page}: '{command}' prints {done.stderr!r}, not {output!r}")
        return
    known = words_of_program() | set(re.findall(r"[a-z]+", command.lower()))
    for word in re.findall(r"(?<![\w.])[a-z]{4,}(?![\w.])", output):
        if word not in known:
            problems.append(f"{page}: the program has no word '{word}', which '{command}' prints there")


def check_rows():
    """Each key opens one row of all tables: what it means is said in one place."""
    rows = {}
    for page in sorted((PROJECT / "docs").glob("*.md")):
        for key in re.findall(rf"^\| `((?:{SECTIONS})\.[\w.]+)", page.read_text(), re.M):
            rows.setdefault(key, []).append(page.name)
    for key, found in rows.items():
        if len(found) > 1:
            problems.append(f"docs: {key} opens rows in {', '.join(found)}")
    return len(rows)


samples = 0
pages = [PROJECT / "README.md", PROJECT / "CONTRIBUTING.md", *sorted((PROJECT / "docs").glob("**/*.md"))]
for page in pages:
    text = page.read_text()
    check_links(page, text)
    if page.parent.name == "decisions":
        continue  # they tell of the past
    for words in commands_in(text):
        check_command(page.relative_to(PROJECT), words)
    check_keys(page.relative_to(PROJECT), text)
    for command, output in samples_in(text) if not page.name.startswith("tutorial_") else ():
        samples += 1
        check_sample(page.relative_to(PROJECT), command, output)
check_decisions()
if len(commands_of()) < 20 or len(known_keys()) < 50 or len(pages) < 20 or check_rows() < 50 or samples < 5:
    problems.append("the check itself has read nothing")
print("\n".join(problems) or f"{len(pages)} pages are right")
sys.exit(1 if problems else 0)
