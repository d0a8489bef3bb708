#!/usr/bin/env python3
"""tests/documents/manual_page.py BUILD: whether the verbs and options in the examples of the man page exist."""
import pathlib
import re
import subprocess
import sys


def wrongs(tool, page):
    for line in re.findall(r"^  (?:\w+=\S+ )*gpushare (.*)$", page, re.M):
        verb, *words = line.split()
        text = subprocess.run([tool, verb, "--help"], check=False, capture_output=True, text=True).stdout
        if not text:
            yield f"gpushare {line}: there is no {verb}"
        for word in words:
            option = word.partition("=")[0]
            if word == "--" or not word.startswith("-"):
                break
            if not re.search(rf"(?<![\w-]){option}\b", text):
                yield f"gpushare {line}: there is no {option}"


def main():
    root = pathlib.Path(__file__).resolve().parents[2]
    found = list(wrongs(pathlib.Path(sys.argv[1], "gpushare").resolve(), (root / "tools/manual.txt").read_text("utf-8")))
    print("\n".join(f"tools/manual.txt: {line}" for line in found))
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
