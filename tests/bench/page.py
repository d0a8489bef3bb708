"""The parts of a page that are made from results: each lies between two marks."""
import re
import sys


def fill(page, name, text):
    """Puts the text between `<!-- measured: NAME ... -->` and the next `<!-- end -->`."""
    old = page.read_text(encoding="utf-8")
    new, count = re.subn(rf"(<!-- measured: {name}\b.*?-->\n).*?(<!-- end -->)", lambda marks: f"{marks[1]}{text}\n{marks[2]}", old, flags=re.S)
    if count != 1:
        sys.exit(f"{page} has {count} marks of {name}, and not one")
    page.write_text(new, encoding="utf-8")
