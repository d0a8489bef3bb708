"""What the tool says of itself, which it makes from its own table of verbs."""
import re
import subprocess


def said(tool, *words):
    """What the tool prints, a line an entry: what it has wrapped has more blanks in front than an entry."""
    text = subprocess.run([tool, *words], capture_output=True, text=True, check=True).stdout
    return re.sub(r"\n {8,}(?=\S)", " ", text)


def options_of(text):
    """[(letter or "", name, argument or "", help)]"""
    return re.findall(r"^  (?:-(.), |    )--([\w-]+)(?:=(\S+))? +(.*)$", text, re.M)


def verbs_of(tool):
    names = re.search(r"^Commands:\n(.*?)\n\n", said(tool, "--help"), re.M | re.S).group(1)
    return [Verb(tool, line.split()[0]) for line in names.split("\n")]


class Verb:
    def __init__(self, tool, name):
        text = said(tool, "help", name)
        self.name = name
        self.usage, self.summary, self.details = re.match(r"Usage: (.*?)\n(.*?)\.\n\n(.*)\n\nOptions:\n", text, re.S).groups()
        self.operands = re.match(r"gpushare \S+ ?(?:\[OPTIONS\])? ?(.*)", self.usage).group(1).split()
        self.operands = [word.strip("[]").removesuffix("...") for word in self.operands if word.strip("[]") != "--"]
        self.options = options_of(text)
