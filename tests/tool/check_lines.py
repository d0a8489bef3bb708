"""check_lines.py SCHEMA FILE...: whether every line of the files is JSON that the schema allows."""
import json
import sys

import jsonschema

with open(sys.argv[1], encoding="utf-8") as file:
    schema = json.load(file)
jsonschema.Draft202012Validator.check_schema(schema)
validator = jsonschema.Draft202012Validator(schema)
bad = False
for name in sys.argv[2:]:
    with open(name, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            for error in validator.iter_errors(json.loads(line)):
                print(f"{name}:{number}: {error.json_path}: {error.message}")
                bad = True
sys.exit(bad)
