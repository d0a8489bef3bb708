#!/usr/bin/env bash
# Python as people use it, bare and preloaded: PyTorch (with both of its allocators), numba, CuPy, JAX. Eight
# minutes; PYTHON_ONLY=torch,numba picks some.
# shellcheck disable=SC2154 # check.sh's variables
scripts=$PWD/tests/gpu/programs
one() { # one NAME MODULE COMMAND...
    local name=$1 module=$2
    shift 2
    case ",${PYTHON_ONLY:-$module}," in *",$module,"*) ;; *) return ;; esac
    if python3 -c "import importlib.util, sys; sys.exit(importlib.util.find_spec('$module') is None)" 2>/dev/null; then
        unmodified "$name" "$@"
        # For docs/compatibility.md.
        echo "    version: $module $(python3 -c "import importlib.metadata as m; print(m.version('$module'))")" | tee -a "$table"
    else
        skip "unmodified: $name" "$module is not installed"
    fi
}
for what in queues spawn loader graph events; do
    one "torch-$what" torch python3 "$scripts/torch_share.py" $what
done
one torch-expandable torch env PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True \
    python3 "$scripts/torch_share.py" queues spawn loader graph
one numba numba python3 "$scripts/numba_share.py"
one cupy cupy python3 "$scripts/cupy_share.py"
one jax jax env XLA_PYTHON_CLIENT_PREALLOCATE=false python3 "$scripts/jax_one.py"
