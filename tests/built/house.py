"""The trees of gpushare, shim/ and tools/: their rooms (folders), their files, and which file takes what from which,
as includes and the object files say. For tests/built/rooms and tests/built/architecture.py; run from the top folder."""
import collections
import os
import re
import subprocess


def rooms_of(variable):
    with open("Makefile", encoding="utf-8") as makefile:
        return re.search(rf"^{variable} := (.*)$", makefile.read(), re.M).group(1).split()


class House:
    """The trees, their files, and which file takes what from which."""

    def __init__(self, build):
        self.rank = {}
        for tree, variable in (("shim", "ROOMS"), ("tools", "TOOL_ROOMS")):
            for room in rooms_of(variable):
                self.rank[f"{tree}/{room}"] = len(self.rank)
        self.rank["shim"] = self.rank["shim/compat"] = -1  # what stands in for libc
        self.rank["tools"] = len(self.rank)
        self.rank["include"] = -2
        self.files = sorted(
            os.path.join(folder, name)
            for tree in ("shim", "tools")
            for folder, _, names in os.walk(tree)
            for name in names
            if name.endswith((".c", ".h", ".S", ".def"))
        )
        self.includes = {path: self._includes_of(path) for path in self.files}
        self.symbols = self._symbols(build)

    def _includes_of(self, path):
        found = []
        with open(path, encoding="utf-8") as source:
            for name in re.findall(r'^#\s*include "([^"]+)"', source.read(), re.M):
                for folder in (os.path.dirname(path), "shim", "tools", "include"):
                    candidate = os.path.join(folder, name)
                    if os.path.exists(candidate):
                        found.append(candidate)
                        break
                else:
                    found.append(name)
        return found

    def _symbols(self, build):
        """{file: {file it takes from: [symbols]}}"""
        exported = set()
        for name in ("exports.map", "exports-hip.map"):
            with open(os.path.join(build, name), encoding="utf-8") as exports:
                exported |= set(re.findall(r"\w+", exports.read()))
        defined, wanted = {}, []
        for path in self.files:
            obj = os.path.join(build, os.path.splitext(path)[0] + ".o")
            if not path.endswith((".c", ".S")):
                continue
            listing = subprocess.run(["nm", obj], capture_output=True, text=True, check=True).stdout
            for line in listing.splitlines():
                kind, name = line.split()[-2:]
                if kind in "TDBRVWC":
                    # what is exported stands for functions of others, and is not how files of ours find each other
                    if name not in exported or path.startswith("tools"):
                        defined[name, self.room(path)] = defined[name] = path
                elif kind in "Uw":
                    wanted.append((path, name))
        taken = collections.defaultdict(lambda: collections.defaultdict(list))
        for path, name in wanted:
            # what each vendor's room has is its own
            where = defined.get((name, self.room(path)), defined.get(name))
            if where not in (None, path):
                taken[path][where].append(name)
        return taken

    def room(self, path):
        return "include" if path.startswith("include/") else os.path.dirname(path)
