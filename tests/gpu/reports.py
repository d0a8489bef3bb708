#!/usr/bin/env python3
"""What people are told: names of scripts, Python lines, callers beneath a static runtime, the driver's own figures,
and what a page shows of a run.

usage: reports.py BUILD gpu|sim
A line a row: ok, FAIL or skip, a tab, what was shown, a tab, the figures. What the tool printed lies in RESULTS.
"""
import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from fleet import MIB, Failed, Table

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
EXAMPLES = ROOT / "config" / "examples"
RULES = """[region frame]
program = {exporter}
size = 64MiB
role = export
[region frame]
program = {importer}
size = 64MiB
role = import
wait = 60s
missing = fail
"""
NUMBA = """import sys
import numpy
from numba import cuda
frame = cuda.device_array(64 << 20, dtype=numpy.uint8)
if sys.argv[1:]:
    frame[:5] = numpy.frombuffer(b"hello", dtype=numpy.uint8)
    cuda.synchronize()
print("sees:", bytes(frame[:5].copy_to_host()).decode(errors="replace"), flush=True)
sys.stdin.readline()
"""


class Stage:
    """A scratch directory, a published one, and the programs that play there."""

    def __init__(self, build, driver):
        self.build, self.driver = pathlib.Path(build).resolve(), driver
        self.results = pathlib.Path(os.environ.get("RESULTS", self.build / "gpu-results"))
        self.results.mkdir(exist_ok=True)
        self.folder = tempfile.TemporaryDirectory(prefix="gpushare-reports-")
        self.path = pathlib.Path(self.folder.name)
        (self.path / "events").mkdir()
        self.actors = []
        self.environment = {key: value for key, value in os.environ.items() if not key.startswith("GPUSHARE_") or "_SIM_" in key}
        self.environment["GPUSHARE_DIR"] = tempfile.mkdtemp(prefix="reports-", dir=os.environ.get("GPUSHARE_DIR"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for actor in self.actors:
            actor.kill()
            actor.wait()
        self.folder.cleanup()

    def file(self, name, text):
        (self.path / name).write_text(text, encoding="utf-8")
        return self.path / name

    def rules(self, exporter, importer):
        return self.file(f"{exporter}-{importer}.conf", RULES.format(exporter=exporter, importer=importer))

    def start(self, config, *words, **more):
        """By `gpushare run`, its events written; what it says on standard error lies in RESULTS."""
        name = pathlib.Path(str(words[1 if len(words) > 1 else 0])).name
        with open(self.results / f"reports-{name}.err", "w", encoding="utf-8") as errors:
            actor = subprocess.Popen([str(word) for word in (self.build / "gpushare", "run", "-c", config, "--", *words)],
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, bufsize=1,
                                     env={**self.environment, "GPUSHARE_EVENT_LOG": f"{self.path}/events/%c.%p.jsonl", **more})
        actor.errors = self.results / f"reports-{name}.err"
        self.actors.append(actor)
        return actor

    def tool(self, *words, statuses=(0,)):
        done = subprocess.run([str(word) for word in (self.build / "gpushare", *words)], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, env=self.environment, timeout=60)
        if done.returncode not in statuses:
            raise Failed(f"gpushare {words[0]} ends with {done.returncode}: {done.stdout[-300:]}")
        return done.stdout


def says(actor, words):
    """Its next line, in which these words stand."""
    line = actor.stdout.readline()
    if words not in line:
        raise Failed(f"it says {line!r}, not {words!r}: {actor.errors.read_text(encoding='utf-8')[-300:]}")
    return line


def enter(actor):
    actor.stdin.write("\n")
    actor.stdin.flush()


def end(actor):
    with contextlib.suppress(OSError):
        actor.stdin.close()
    return actor.wait(30)


def scripts(stage, table):
    """cam.py and view.py; view.py frees the frame twice."""
    source = (EXAMPLES / "frontend.py").read_text(encoding="utf-8")
    cam = stage.file("cam.py", source)
    view = stage.file("view.py", source.replace('"cudaFree")\n', '"cudaFree")\n    cuda.cudaFree(frame)\n'))
    line = view.read_text(encoding="utf-8").splitlines().index("    cuda.cudaFree(frame)") + 1
    config = stage.rules("cam.py", "view.py")
    exporter = stage.start(config, sys.executable, cam)
    says(exporter, "sees: ")
    importer = stage.start(config, sys.executable, view)
    says(importer, "sees: ")
    listed = stage.tool("ls")
    table.row(" cam.py " in listed and "1: view.py " in listed, "two scripts share by their names", "cam.py, 1: view.py")
    status = end(importer)
    told = importer.errors.read_text(encoding="utf-8")
    table.row(f"main at {view}:{line}" in told.replace("\n=========", "") and "double-free" in told,
              "a double free in one is reported at its Python line",
              next((one.strip("= ") for one in told.splitlines() if "view.py:" in one), f"status {status}"))
    table.row(end(exporter) == 0, "the other one ends well")


def daemon(stage, table):
    """The example of config/examples, and what is told about it while both run."""
    config = EXAMPLES / "daemon.conf"
    camera = stage.start(config, stage.build / "tests/apps/camerad")
    says(camera, "frame 1, drawn by camerad")
    front = stage.start(config, sys.executable, EXAMPLES / "frontend.py")
    says(front, "sees: frame 1, drawn by camerad")
    enter(camera)
    says(camera, "frame 2")
    enter(front)
    says(front, "sees: frame 2, drawn by camerad")
    table.row(True, "a daemon in C and a viewer in Python work on one buffer", "frame 2, drawn by camerad")
    with table.part("figures while they run"):
        figures(stage, table)
    status = end(front), end(camera)
    table.row(status == (0, 0), "both end well", f"{status}")


def figures(stage, table):
    """The driver's figures stand beside ours; the metrics have the buffer's bytes."""
    text = stage.tool("top", "--once")
    (stage.results / "reports-top.txt").write_text(text, encoding="utf-8")
    seen = json.loads(stage.tool("top", "--once", "--json"))
    (stage.results / "reports-top.json").write_text(json.dumps(seen, indent=1), encoding="utf-8")
    processes = seen["processes"]
    driver = [process.get("driver") for process in processes]
    table.row(len(processes) == 2 and all(process["proportional"] == 32 * MIB for process in processes) and
              (stage.driver == "sim" or all(driver)), "top: half of the buffer each, beside the driver's own figure",
              ", ".join(f"{process['command']}: proportional {process['proportional'] // MIB} MiB, driver {(process.get('driver') or 0) // MIB} MiB, "
                        f"fair {(process.get('fair') or 0) // MIB} MiB" for process in processes))
    metrics = stage.tool("metrics")
    (stage.results / "reports-metrics.prom").write_text(metrics, encoding="utf-8")
    saved = re.search(r"^gpushare_memory_saved_bytes\{.*\} (\S+)$", metrics, re.M)
    table.row(saved and float(saved[1]) == 64 * MIB, "metrics: one copy is saved", saved and saved[1])


def numba(stage, table):
    works = stage.driver == "gpu" and subprocess.run([sys.executable, "-c", NUMBA, "draw"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                                     stderr=subprocess.DEVNULL).returncode == 0
    if not works:
        table.skip("two numba scripts on one array", "no card" if stage.driver == "sim" else "no numba that runs without gpushare")
        return
    cam, view = stage.file("ncam.py", NUMBA), stage.file("nview.py", NUMBA)
    config = stage.rules("ncam.py", "nview.py")
    exporter = stage.start(config, sys.executable, cam, "draw")
    says(exporter, "sees: hello")
    importer = stage.start(config, sys.executable, view)
    says(importer, "sees: hello")
    table.row((end(importer), end(exporter)) == (0, 0), "two numba scripts on one array", "hello")


def timeline(stage, table):
    """Of all that ran until now."""
    page, trace = stage.results / "reports-timeline.html", stage.results / "reports-trace.json"
    stage.tool("timeline", f"{stage.path}/events", "-o", page)
    stage.tool("timeline", "--perfetto", f"{stage.path}/events", "-o", trace)
    events = json.loads(trace.read_text(encoding="utf-8"))["traceEvents"]
    opened = [json.loads(line) for path in (stage.path / "events").iterdir() for line in path.read_text(encoding="utf-8").splitlines()]
    opens = sum(one.get("event") == "opened" for one in opened)
    begun = sum(event["ph"] == "b" for event in events)
    table.row(opens >= 2 and begun >= opens and page.stat().st_size > 10000, "a timeline of these runs", f"{opens} opens, {len(events)} trace events")


def static_runtime(stage, table):
    """Two double frees by one wrapper, linked as nvcc does by default."""
    program = stage.build / "tests/apps" / ("twice" if stage.driver == "sim" else "twice_nvidia")
    if not program.exists():
        table.skip("two double frees beneath a static runtime", f"no {program.name}")
        return
    told = stage.tool("audit", "--gen-suppressions", program, statuses=(1,))
    (stage.results / "reports-twice.err").write_text(told, encoding="utf-8")
    table.row(" camera at " in told and " viewer at " in told and "double-free in cudaFree" in told and "2 findings" in told,
              "two double frees beneath a static runtime: both named at their own lines",
              "; ".join(re.findall(r"(?:camera|viewer) at [^\n]*", told)))
    made = [f"[suppress {part}" for part in told.split("[suppress ")[1:]]
    known = stage.file("known", made[0][:made[0].rindex("stack =")] + re.search(r"stack =.*", made[0])[0] + "\n")
    rest = stage.tool("audit", "-s", known, program, statuses=(1,))
    table.row(" camera at " not in rest and " viewer at " in rest and "1 suppressed" in rest, "one is suppressed, the other still reported",
              re.search(r"SUMMARY: .*", rest)[0])


def unwatched(stage, table):
    told = stage.tool("audit", "--", "env", "-u", "LD_PRELOAD", stage.build / "tests/apps/five", statuses=(3,))
    (stage.results / "reports-unwatched.err").write_text(told, encoding="utf-8")
    table.row(True, "a program that drops the preload gets no clean bill", "status 3")


def main():
    table = Table()
    with Stage(*sys.argv[1:3]) as stage:
        for step in (scripts, daemon, numba, timeline, static_runtime, unwatched):
            with table.part(step.__name__):
                step(stage, table)


if __name__ == "__main__":
    main()
