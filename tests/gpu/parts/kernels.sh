#!/usr/bin/env bash
# Kernels of two unmodified programs on one buffer: while both run, and handed over. Two minutes.
# shellcheck disable=SC2154 # check.sh's variables
for writer in shared static; do
    for reader in shared static; do
        pair alloc $writer $reader 64
        pair result $writer $reader 64
    done
done
