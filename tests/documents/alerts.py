#!/usr/bin/env python3
"""tests/documents/alerts.py: config/examples/alerts.yml is YAML of the form that Prometheus reads, and what its rules ask for
are metrics and labels of `gpushare metrics`. Whether the expressions are PromQL, promtool says. Skipped without
python3-yaml."""
import pathlib
import re
import sys

try:
    import yaml
except ImportError:
    print("skipped: no python3-yaml")
    sys.exit(0)

ROOT = pathlib.Path(__file__).resolve().parents[2]
OF_PROMETHEUS = {"instance"}


def main():
    source = (ROOT / "tools/top/metrics.c").read_text(encoding="utf-8")
    page = (ROOT / "docs/monitoring.md").read_text(encoding="utf-8")
    families = source[source.index("families[] = {"):source.index("/* --- labels")]
    metrics = {f"gpushare_{name}" for name, member in re.findall(r'\{"(\w+)",\s*"(\w+)",\s*"[A-Z]', families)} | {"gpushare_build_info"}
    labels = {name for name, member in re.findall(r'\{"(\w+)", "(\w+)"\}', families)} | {"directory"} | OF_PROMETHEUS
    missing = [name for name in metrics if f"`{name}`" not in page]
    assert not missing, f"docs/monitoring.md lacks {missing}"
    rules = [rule for group in yaml.safe_load((ROOT / "config/examples/alerts.yml").read_text(encoding="utf-8"))["groups"] for rule in group["rules"]]
    assert len({rule["alert"] for rule in rules}) == len(rules), "two rules have one name"
    for rule in rules:
        assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}, rule
        asked = set(re.findall(r"gpushare_\w+", rule["expr"]))
        assert asked and asked <= metrics, f"{rule['alert']} asks for {asked - metrics}"
        assert rule["expr"].count("(") == rule["expr"].count(")") and rule["expr"].count("[") == rule["expr"].count("]"), rule["alert"]
        used = {label.strip() for by in re.findall(r"by \(([^)]*)\)", rule["expr"]) for label in by.split(",")}
        used |= set(re.findall(r"\$labels[.](\w+)", str(rule["annotations"])))
        assert used <= labels, f"{rule['alert']} has labels {used - labels}"
        assert rule["labels"]["severity"] in ("warning", "critical") and rule["annotations"]["summary"]
    print(f"{len(rules)} rules, {len(metrics)} metrics")


if __name__ == "__main__":
    main()
