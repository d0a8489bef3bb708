#!/usr/bin/env bash
# Start-up paths: who loads CUDA how, and whether it notices a preloaded library. Five minutes.
# shellcheck disable=SC2154 # check.sh's variables
python() { # python NAME MODULE CODE
    if python3 -c "import importlib.util, sys; sys.exit(importlib.util.find_spec('$2') is None)" 2>/dev/null; then
        unmodified "$1" python3 -c "$3"
    else
        skip "unmodified: $1" "$2 is not installed"
    fi
}
unmodified true /bin/true
unmodified hello-shared "$programs/hello_shared"
unmodified hello-static "$programs/hello_static"
if command -v nvidia-smi >/dev/null; then unmodified nvidia-smi nvidia-smi -L; else skip "unmodified: nvidia-smi" "not there"; fi
unmodified python3 python3 -c 'print("no CUDA")'
python import-torch torch 'import torch; print(torch.__version__)'
python torch-init torch 'import torch; torch.cuda.init(); print(torch.cuda.device_count(), torch.cuda.get_device_name())'
python import-cupy cupy 'import cupy; print(cupy.__version__, int(cupy.arange(10).sum()))'
python import-numba numba 'from numba import cuda; print(len(cuda.gpus), cuda.get_current_device().compute_capability)'
python import-jax jax 'import jax; print(jax.__version__, [d.platform for d in jax.devices()])'
python import-mpi4py mpi4py 'import mpi4py; from mpi4py import MPI; print(MPI.COMM_WORLD.size)'
python cuda-bindings cuda.bindings 'from cuda.bindings import driver; print(driver.cuInit(0)[0], driver.cuDeviceGetCount()[1])'
