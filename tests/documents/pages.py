#!/usr/bin/env python3
"""The pages that people read: every console block is what the commands in it print on the simulated driver, every
program shown is that of tests/apps, no link is dead, and each file and each target of make that a page names is there.

Usage: tests/documents/pages.py [--check] [BUILD_DIR]     (make docs)
       tests/documents/pages.py --installed DIR: only whether the pages there have dead links
Without --check, what differs is written anew, less what was left out. A page runs from top to bottom in one shell, in an empty
directory. `...` stands for any lines. Addresses, pids, times, ids and the widths of columns may differ. Comments say
what readers need not:

    <!-- file: NAME -->     the block below is this file: of the repository if it has a folder, else written there
    <!-- run: COMMANDS -->  first, unseen
    <!-- not run: WHY -->   the console block below is not run
"""
import concurrent.futures
import difflib
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

from findings import Machine

ROOT = pathlib.Path(__file__).resolve().parents[2]
RUN = ["README.md", "docs/audit.md", "docs/tutorial.md", "docs/two-programs.md", "docs/troubleshooting.md", "docs/replicas.md"]
MARK = "\x01end of command\x01\n"
PLACE, SHARED = "/tmp/tutorial", "/dev/shm/gpushare-1000"
PART = re.compile(r"^<!-- (?P<what>file|run|not run): (?P<name>.*?) -->\n|^```(?P<kind>\w*)\n(?P<text>.*?)^```\n", re.M | re.S)
VARIES = [(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME"), (r"0x[0-9a-f]{6,}", "ADDRESS"), (r"#(\d+) 0x[0-9a-f]+", r"#\1 OFFSET"),
          (r"\b(?=[0-9a-f]*\d)(?:[0-9a-f]{32}|[0-9a-f]{16})\b", "ID"), (r"\b(?=[0-9a-f]{0,7}[0-9])(?=[0-9a-f]{0,7}[a-f])[0-9a-f]{8}\b", "ID"),
          (r"\b\d{8,10}\b", "ID"), (r"\buid +\d+", "uid NUMBER"), (r"\b\d+(\.\d+)? (ms|us|s|min)\b", "AGE"), (r"\b[1-9]\d{2,6}\b(?! [KMGB])", "NUMBER"),
          (r"(\[|\bpid )\d+\b", r"\1NUMBER"), (r"[ \t]+", " "), (r"-{2,}", "--")]


class Block:
    """A console block of a page: its commands, what the page says that they print, and what they print."""

    def __init__(self, match):
        self.span = match.span("text")
        self.commands = []  # [command, lines of the page, lines printed]
        for line in match["text"].splitlines():
            if line.startswith("$ "):
                self.commands.append([line[2:], [], []])
            elif self.commands and self.commands[-1][0].endswith("\\") and not self.commands[-1][1]:
                self.commands[-1][0] += "\n" + line
            else:
                self.commands[-1][1].append(line)

    def differs(self):
        return [command for command in self.commands if not fits(masked(command[1]), masked(command[2]))]

    def rewritten(self):
        lines = []
        for command, page, printed in self.commands:
            lines += ["$ " + command] + (page if fits(masked(page), masked(printed)) else elided(page, printed))
        return "".join(line + "\n" for line in lines)


def masked(lines):
    out = []
    for line in lines:
        for pattern, name in VARIES:
            line = re.sub(pattern, name, line)
        out.append(line.strip())
    return out


def fits(page, printed):
    """Whether the lines are those of the page, in which `...` is any."""
    if page[:1] == ["..."]:
        return any(fits(page[1:], printed[i:]) for i in range(len(printed) + 1))
    return page[:1] == printed[:1] and (not page or fits(page[1:], printed[1:]))


def told_apart(lines):
    """Of the lines that end a report each is that of the line before it."""
    lines = masked(lines)
    return [(line, lines[i - 1] * line.endswith("=")) for i, line in enumerate(lines)]


def elided(page, printed):
    """The lines printed, without what the page has left out with `...`."""
    kept, gaps = [], set() # how many lines stand before each
    for line in page:
        gaps.add(len(kept)) if line == "..." else kept.append(line)
    out = []
    for kind, i, j, k, m in difflib.SequenceMatcher(None, told_apart(kept), told_apart(printed), False).get_opcodes():
        gap = next((gap for gap in sorted(gaps) if i <= gap <= j), None)
        if kind == "equal":
            out += kept[i:j]
        elif gap is None:
            out += printed[k:m]
        else:
            out += [*printed[k : k + gap - i], "...", *printed[m - (j - gap) : m]]
    return out


def script_of(page, text):
    """What the shell runs, and the blocks that wait for its output."""
    script, blocks, name, skip = ["mkdir place; cd place\n"], [], "", False
    for part in PART.finditer(text):
        if part["what"] == "run":
            script.append(f"{{ {part['name']}\n}} >/dev/null\n")
        elif part["what"]:
            name, skip = part["name"] * (part["what"] == "file"), part["what"] == "not run"
            continue
        elif name and "/" in name:
            if (ROOT / name).read_text(encoding="utf-8") != part["text"]:
                sys.exit(f"{page}: {name} is another one")
        elif name:
            script.append(f"cat >{name} <<'END OF FILE'\n{part['text']}END OF FILE\n")
        elif part["kind"] == "console" and not skip:
            blocks.append(Block(part))
            script += [f"{command}\nset -- $?; printf '{MARK}'; (exit $1)\n" for command, _, _ in blocks[-1].commands]
        name, skip = "", False
    return "".join(script), blocks


def shown(text, machine):
    for real, name in ((machine.place + "/place", PLACE), (machine.environment["GPUSHARE_DIR"], SHARED), (str(machine.build), "/usr/local/bin"),
                       (str(ROOT) + "/", "")):
        text = text.replace(real, name)
    return re.sub(r"^=+( \[\d+\])? +#\d+ .*( in /(usr/)?lib|\b_start in ).*\n", "", text, flags=re.M)


def run(machine, script):
    """What it prints, errors in their place. What it has left running is ended."""
    environment = {**machine.environment, "GPUSHARE_SIM_LINGER_MS": "1000", "BUILD": str(machine.build), "TOP": str(ROOT)}
    for name in ("GPUSHARE_CONFIG", "GPUSHARE_LOG_LEVEL"):
        del environment[name]
    path = pathlib.Path(machine.place, "script")
    path.write_text(script, encoding="utf-8")
    with tempfile.TemporaryFile() as output:
        shell = subprocess.Popen(["bash", "--norc", str(path)], env=environment, cwd=machine.place, stdin=subprocess.DEVNULL,
                                 stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            shell.wait(120)
        except subprocess.TimeoutExpired:
            print(f"{path}: not done after two minutes")
        try:
            os.killpg(shell.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        output.seek(0)
        return output.read().decode("utf-8", "replace")


def check_page(build, page, write):
    """Whether it is what its commands print."""
    path = ROOT / page
    text = path.read_text(encoding="utf-8")
    script, blocks = script_of(page, text)
    with Machine(build) as machine:
        outputs = shown(run(machine, script), machine).split(MARK)
    commands = [command for block in blocks for command in block.commands]
    for command, output in zip(commands, outputs):
        command[2] = output.rstrip("\n").splitlines()
    wrong = [command for block in blocks for command in block.differs()]
    for command, expected, printed in wrong:
        print(f"{page}: $ {command}", *(f"-{line}" for line in expected), *(f"+{line}" for line in printed), sep="\n")
    if write:
        for block in reversed(blocks):
            text = text[: block.span[0]] + block.rewritten() + text[block.span[1] :]
        path.write_text(text, encoding="utf-8")
    return not wrong


# --- links ---


def anchor(title):
    """As GitHub makes it of a heading."""
    return re.sub(r"[^\w\- ]", "", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", title).lower()).replace(" ", "-")


def anchors(path):
    text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
    return {anchor(title) for title in re.findall(r"^#+ (.*)$", text, re.M)}


def pages_of_sources():
    return subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "*.md"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout.split()


def dead_links(root, pages):
    """(page, link) of those that lead to no file, or to no heading of one."""
    for page in pages:
        text = re.sub(r"^```.*?^```$|`[^`\n]*`", "", (root / page).read_text(encoding="utf-8"), flags=re.M | re.S)
        for link in re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'(?:src|srcset|href)="([^"]+)"', text):
            target, _, part = link.partition("#")
            path = (root / page).parent / target if target else root / page
            if re.match(r"[a-z]+:", link):
                continue
            if not path.exists() or (part and part not in anchors(path)):
                yield page, link


# --- files and targets ---


def targets():
    """What make knows how to make."""
    rules = subprocess.run(["make", "-pRrq", ":"], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False).stdout
    return set(re.findall(r"^([\w./-]+):(?!=)", rules, re.M))


def code_of(text):
    """What stands between backticks, and the blocks that are typed."""
    return re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```\n", "", text, flags=re.M | re.S)) + re.findall(r"^```sh\n(.*?)^```", text, re.M | re.S)


def not_there(pages):
    """(page, what) of files of the repository and of targets that a page names in code. A log tells what was there once."""
    known = targets() | {"app"}  # of a reader's own
    for page in pages:
        if page in ("CHANGELOG.md", "docs/checked.md"):
            continue
        for code in code_of((ROOT / page).read_text(encoding="utf-8")):
            for path in re.findall(r"(?<![\w/.$-])(?:shim|tests|tools|config|include|docs|\.ci)/[\w./*-]*[\w*](?![\w<])", code):
                if not any(ROOT.glob(path)):
                    yield page, path
            for words in re.findall(r"^(?:\w+=(?:\"[^\"]*\"|\S+) )*make((?: [\w./=-]+)+)", code, re.M):
                yield from ((page, "make " + word) for word in words.split() if "=" not in word and not word.startswith("-") and word not in known)


def check_installed(doc):
    """Whether the pages below a folder lead to nothing that is not there."""
    dead = list(dead_links(doc, [str(path.relative_to(doc)) for path in doc.glob("**/*.md")]))
    for page, link in dead:
        print(f"{page}: dead link: {link}")
    return 1 if dead else 0


def main():
    if sys.argv[1:2] == ["--installed"]:
        return check_installed(pathlib.Path(sys.argv[2]))
    words = [word for word in sys.argv[1:] if word != "--check"]
    build = pathlib.Path(words[0] if words else "build").resolve()
    good = True
    for page, link in dead_links(ROOT, pages_of_sources()):
        print(f"{page}: dead link: {link}")
        good = False
    for page, what in not_there(pages_of_sources()):
        print(f"{page}: there is no {what}")
        good = False
    with concurrent.futures.ThreadPoolExecutor() as pool: # they wait most of the time
        answers = list(pool.map(lambda page: check_page(build, page, "--check" not in sys.argv), words[1:] or RUN))
    return 0 if good and (all(answers) or "--check" not in sys.argv) else 1


if __name__ == "__main__":
    sys.exit(main())
