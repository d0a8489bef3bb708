#!/usr/bin/env bash
# The scenarios that the simulator is tested with, but for those of the part findings. Ten minutes.
scenarios "scenarios of tests/scenario" "-$(cat tests/gpu/findings.filter)"
