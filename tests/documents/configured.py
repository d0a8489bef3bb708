#!/usr/bin/env python3
"""tests/documents/configured.py BUILD: whether what the pages say of the configuration is so. `gpushare check` is asked for all of it:

- each `key = value` in a page, and each block ```ini of a page, is taken as it stands; a value of capitals (`FILE`) stands for any;
- each default that a page tells is the one that `check --all` tells: in a table with the columns "key" and "default", behind a
  key of config/gpushare.conf, and in sentences of the forms in DEFAULTS;
- each option behind a verb, as `gpushare VERB --option`, is in that verb's help.

Prints what is wrong, as PAGE: what, and how much was looked at.
"""
import functools
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
# A key of a region that is taken with one of these lines beside it is taken.
BESIDE = ["role = export\n", "role = import\n", "role = auto\n", "role = merge\n", "role = export\nbacking = vmm\n", "role = export\nready = free\n",
          "role = export\nframes = latest\n", "role = export\nframes = each\n", "role = merge\nquiet = 0\n"]
REFUSED = {"upload = once"}  # a page says that it is refused
CODE = re.compile(r"`([a-z_]+) = ([^`]+)`")
DEFAULTS = [  # key, value
    re.compile(r"`(\w+) = ([^`]+)`(?:,| \() ?(?:which is )?the default\b"),
    re.compile(r"`(\w+)`[^`.|]{0,60}\(?\bdefault(?: is|:)? `([^`]+)`"),
    re.compile(r"`(\w+)(?: = [^`]+)?`, which is (\w+) by default"),
    re.compile(r"^;?(\w+) = \S+ +; .*?(\S+) is the default", re.M),
]
# Of a merge rule these differ from every other rule.
OF_MERGE = "[region x]\nrole = merge\n"


def pages():
    return [path for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), ROOT / "tests/sim/README.md"] if path.name != "CHANGELOG.md"]


class Tool:
    def __init__(self, build):
        self.path = str(pathlib.Path(build).resolve() / "gpushare")
        self.environment = {key: value for key, value in os.environ.items() if not key.startswith("GPUSHARE_")}

    def run(self, *words):
        return subprocess.run([self.path, *words], env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)

    @functools.lru_cache(maxsize=None)
    def check(self, text, *options):
        """(whether it is taken, what is said)"""
        with tempfile.NamedTemporaryFile("w", suffix=".conf", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            done = self.run("check", *options, file.name)
        return done.returncode == 0, done.stdout.replace(file.name, "line")

    @functools.lru_cache(maxsize=None)
    def defaults(self, text):
        return dict(re.findall(r"^  (\w+) += (.*?)(?: +\(default\))?$", self.check(text, "--all")[1], re.M))

    @functools.lru_cache(maxsize=None)
    def options(self, verb):
        return set(re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", self.run(verb, "--help").stdout))


@functools.lru_cache(maxsize=None)
def keys():
    """{key: its default, or None} of [gpushare] and of [region]."""
    text = (ROOT / "shim/config/options.def").read_text(encoding="utf-8")
    rows = re.findall(r"^(OPTION|RULE_KEY)\((\w+),(?: \w+,)?? [A-Z_]+, (?:\"([^\"]*)\"|NULL),", text, re.M)
    return [{key: default for kind, key, default in rows if kind == wanted} for wanted in ("OPTION", "RULE_KEY")]


def taken(tool, key, value):
    """Why the two are not taken; None: they are."""
    program, region = keys()
    if re.fullmatch("[A-Z]+", value):
        return None if key in program or key in region else "no such key"
    attempts = [f"[gpushare]\n{key} = {value}\n"] if key in program else []
    for beside in BESIDE if key in region else []:
        own = re.sub(rf"^{key} = .*\n", "", beside, flags=re.M)
        attempts.append(f"[region x{'{n}' if key == 'index' else ''}]\n{own}{key} = {value}\n")
    said = "no such key"
    for attempt in attempts:
        good, said = tool.check(attempt, "-q")
        if good:
            return None
    return said.strip().splitlines()[0]


def blocks(text):
    """The blocks that are files of gpushare's, and not units of systemd or suppressions."""
    for block in re.findall(r"^```ini\n(.*?)^```", text, re.M | re.S):
        if re.search(r"^\[(gpushare|region .*)\]", block, re.M):
            yield block


def tables(text):
    """(key, default) of tables that have these columns."""
    for rows in re.findall(r"^\| key \| default \|.*\n\|[ -|:]*\n((?:\|.*\n)+)", text, re.M):
        for row in rows.splitlines():
            cells = row.split(" | ")
            for key in re.findall(r"`(\w+)`", cells[0]):
                yield key, cells[1].strip(" `")


def told(text):
    """(key, default) of sentences."""
    flat = re.sub(r"\n(?=\S)", " ", re.sub(r"^```.*?^```\n", "", text, flags=re.M | re.S))
    for pattern in DEFAULTS:
        yield from pattern.findall(text if pattern.flags & re.M else flat)


def has_default(tool, key, value, rule):
    """Whether the value is the key's default, by the words of the tool: 30s is also 30 s there."""
    program, region = keys()
    if rule and key in region:
        return tool.defaults(rule).get(key) == tool.defaults(f"{rule}{key} = {value}\n").get(key)
    return value in (program.get(key), region.get(key))


def wrong_in(tool, path, counts):
    text = path.read_text(encoding="utf-8")
    for key, value in CODE.findall(text):
        counts["keys"] += 1
        why = taken(tool, key, value)
        if (f"{key} = {value}" in REFUSED) != bool(why):
            yield f"`{key} = {value}`: {why or 'it is taken'}"
    for block in blocks(text):
        counts["files"] += 1
        good, said = tool.check(block, "-q")
        if not good:
            yield f"a file of it: {said.strip()}"
    for key, value in tables(text):
        counts["defaults"] += 1
        if not has_default(tool, key, value, OF_MERGE):
            yield f"the default of `{key}` in a merge rule is not {value}"
    for key, value in told(text):
        if key in keys()[0] or key in keys()[1]:
            counts["defaults"] += 1
            if not has_default(tool, key, value, OF_MERGE) and not has_default(tool, key, value, ""):
                yield f"the default of `{key}` is not {value}"
    for verb, rest in re.findall(r"`gpushare ([a-z]+)((?: [^`]*)?)`", text):
        for option in re.findall(r"(?<= )--?[a-z][\w-]*", rest.split(" -- ")[0]):
            counts["options"] += 1
            if option not in tool.options(verb):
                yield f"gpushare {verb} has no {option}"


def wrong_in_the_example(tool, counts):
    """config/gpushare.conf has every key with its default; those of regions stand behind a semicolon."""
    text = (ROOT / "config/gpushare.conf").read_text(encoding="utf-8")
    of_program, _, of_region = text.partition("[region example]")
    of_region, _, of_merge = of_region.partition("[region merged]")
    for part, form, rule in ((of_program, r"^(\w+) = (\S+)$", ""), (of_region, r"^;(\w+) = (\S+)$", ""), (of_merge, r"^;(\w+) = (\S+)$", OF_MERGE)):
        for key, value in re.findall(form, part, re.M):
            if key != "role":
                counts["defaults"] += 1
                if not has_default(tool, key, value, rule):
                    yield f"the default of {key} is not {value}"
    yield from (f"{key} is not there" for key in {**keys()[0], **keys()[1]} if not re.search(rf"^;?{key} = ", text, re.M))


def main():
    tool, counts = Tool(sys.argv[1] if sys.argv[1:] else "build"), {"keys": 0, "files": 0, "defaults": 0, "options": 0}
    wrong = [f"{path.relative_to(ROOT)}: {what}" for path in sorted(pages()) for what in wrong_in(tool, path, counts)]
    wrong += [f"config/gpushare.conf: {what}" for what in wrong_in_the_example(tool, counts)]
    for path in sorted(ROOT.glob("config/examples/*.conf")):
        counts["files"] += 1
        good, said = tool.check(path.read_text(encoding="utf-8"), "-q")
        if not good:
            wrong.append(f"{path.relative_to(ROOT)}: {said.strip()}")
    print("\n".join(wrong) if wrong else ", ".join(f"{number} {what}" for what, number in counts.items()) + ": as the tool has them")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
