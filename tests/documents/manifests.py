#!/usr/bin/env python3
"""tests/documents/manifests.py TOOL: the files of config/containers against schemas, written down here for the fields that they
use; what they run is understood by the tool, and every volume and label fits. Skipped without python3-yaml."""
import pathlib
import re
import subprocess
import sys
import tempfile

import jsonschema

try:
    import yaml
except ImportError:
    print("skipped: no python3-yaml")
    sys.exit(0)

HERE = pathlib.Path(__file__).resolve().parents[2] / "config/containers"


def thing(required, **properties):
    return {"type": "object", "additionalProperties": False, "required": required.split(), "properties": properties}


def many(of):
    return {"type": "array", "items": of, "minItems": 1}


TEXT, FLAG = {"type": "string", "minLength": 1}, {"type": "boolean"}
TEXTS = {"type": "object", "additionalProperties": TEXT}
META = thing("name", name=TEXT, namespace=TEXT, labels=TEXTS)
CONTAINER = thing(
    "name image", name=TEXT, image=TEXT, command=many(TEXT), env=many(thing("name value", name=TEXT, value=TEXT)),
    resources=thing("limits", limits={"type": "object", "additionalProperties": {"type": "integer"}}),
    securityContext=thing("", privileged=FLAG),
    volumeMounts=many(thing("name mountPath", name=TEXT, mountPath=TEXT, readOnly=FLAG,
                            mountPropagation={"enum": ["None", "HostToContainer", "Bidirectional"]})))
VOLUME = thing("name", name=TEXT, configMap=thing("name", name=TEXT),
               hostPath=thing("path type", path=TEXT, type={"enum": ["Directory", "DirectoryOrCreate", "File"]}))
POD = thing("containers", hostIPC=FLAG, nodeSelector=TEXTS, initContainers=many(CONTAINER), containers=many(CONTAINER),
            volumes=many(VOLUME))
TEMPLATE = thing("metadata spec", metadata=thing("labels", labels=TEXTS), spec=POD)
SELECTOR = thing("matchLabels", matchLabels=TEXTS)
KINDS = {
    "DaemonSet": thing("apiVersion kind metadata spec", apiVersion={"const": "apps/v1"}, kind=TEXT, metadata=META,
                       spec=thing("selector template", selector=SELECTOR, template=TEMPLATE)),
    "Deployment": thing("apiVersion kind metadata spec", apiVersion={"const": "apps/v1"}, kind=TEXT, metadata=META,
                        spec=thing("selector template", replicas={"type": "integer"}, selector=SELECTOR, template=TEMPLATE)),
    "ConfigMap": thing("apiVersion kind metadata data", apiVersion={"const": "v1"}, kind=TEXT, metadata=META, data=TEXTS),
}
SERVICE = thing("image command devices", image=TEXT, command=many(TEXT), devices=many(TEXT), depends_on=many(TEXT),
                ipc={"type": "string", "pattern": "^(shareable|host|service:.+)$"},
                pid={"type": "string", "pattern": "^(host|service:.+)$"})
COMPOSE = thing("services", services={"type": "object", "additionalProperties": SERVICE})


def check_workload(document):
    spec = document["spec"]
    assert spec["selector"]["matchLabels"].items() <= spec["template"]["metadata"]["labels"].items(), "the labels differ"
    pod = spec["template"]["spec"]
    volumes = [volume["name"] for volume in pod["volumes"]]
    mounts = [mount["name"] for container in pod["containers"] + pod.get("initContainers", []) for mount in container["volumeMounts"]]
    assert set(volumes) == set(mounts) and len(volumes) == len(set(volumes)), "volumes and mounts differ"


def check_image(documents):
    """The image that the Containerfile makes is the one that the pods of gpushare's own ask for, of this version."""
    made = re.search(r"podman build .* -t (\S+) ", (HERE / "Containerfile").read_text(encoding="utf-8"))[1]
    version = re.search(r"^VERSION := (.*)$", (HERE.parent.parent / "Makefile").read_text(encoding="utf-8"), re.M)[1]
    pod = next(document for document in documents if document["kind"] == "DaemonSet")["spec"]["template"]["spec"]
    images = {container["image"] for container in pod["containers"] + pod["initContainers"]}
    assert images == {made} and made.endswith(":" + version), f"{images}, {made} and version {version} differ"


def main():
    tool = sys.argv[1]
    with open(HERE / "kubernetes.yaml", encoding="utf-8") as file:
        documents = list(yaml.safe_load_all(file))
    for document in documents:
        jsonschema.validate(document, KINDS[document["kind"]])
        if "spec" in document:
            check_workload(document)
    check_image(documents)
    for text in (text for document in documents for text in document.get("data", {}).values()):
        with tempfile.NamedTemporaryFile("w", suffix=".conf") as conf:
            conf.write(text)
            conf.flush()
            subprocess.run([tool, "check", conf.name], check=True, stdout=subprocess.DEVNULL)
    with open(HERE / "compose.yaml", encoding="utf-8") as file:
        jsonschema.validate(yaml.safe_load(file), COMPOSE)
    print(f"{len(documents) + 1} documents are as they should be")


main()
