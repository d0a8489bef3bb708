"""Keepers of a published directory."""
import pathlib


def keepers(directory):
    """The keeper and its stand-by: their pids."""
    found, mark = [], f"GPUSHARE_DIR={directory}\0".encode()
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if b"\0keeper" in (process / "cmdline").read_bytes() and mark in (process / "environ").read_bytes():
                found.append(int(process.name))
        except OSError:
            continue
    return found
