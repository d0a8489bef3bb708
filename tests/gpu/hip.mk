# HIP for NVIDIA cards is a header over CUDA's runtime. That of Debian is older than CUDA 13, which lacks what these
# functions of it call: they are left out. Included by the top Makefile, behind sim.mk, which knows where headers are.
HIP_NVIDIA_HEADER := hip/nvidia_detail/nvidia_hip_runtime_api.h
HIP_NVIDIA_GONE := hipMemAdvise|hipMemPrefetchAsync|hipChooseDevice|hipGetDeviceProperties|hipDeviceGetAttribute|hipCtxCreate|hipBindTexture|hipBindTexture2D|hipGetTextureAlignmentOffset|hipLaunchCooperativeKernelMultiDevice
HIP_NVIDIA_INC := $(BUILD)/hip-nvidia
HIP_NVIDIA := $(if $(wildcard $(HIP_INC)/$(HIP_NVIDIA_HEADER)),writer_hip reader_hip)
HIP_NVIDIA_GPU := $(HIP_NVIDIA:%=$(BUILD)/gpu/%)
HIP_NVIDIA_SIM := $(HIP_NVIDIA:%=$(BUILD)/gpu-sim/%)

gpu-programs: $(HIP_NVIDIA_GPU)
apps gpu-rehearsal: $(HIP_NVIDIA_SIM)

$(HIP_NVIDIA_INC)/$(HIP_NVIDIA_HEADER): $(HIP_INC)/$(HIP_NVIDIA_HEADER)
	@mkdir -p $(@D)
	awk '/^(__HIP_DEPRECATED )?inline static / && / ($(HIP_NVIDIA_GONE))\(/ { gone = 1 } !gone; /^}/ { gone = 0 }' $< >$@

HIP_NVIDIA_COMPILE = $(CXX) -std=gnu++17 -O0 -g -isystem $(HIP_NVIDIA_INC) -isystem $(CUDA_INC) -idirafter $(HIP_INC) $< -o $@
$(HIP_NVIDIA_GPU): tests/gpu/programs/hip_nvidia.cpp $(HIP_NVIDIA_INC)/$(HIP_NVIDIA_HEADER)
	@mkdir -p $(@D); echo "  CXX   $@"
	$(HIP_NVIDIA_COMPILE) -L$(CUDART_DIR) -lcudart
$(HIP_NVIDIA_SIM): tests/gpu/programs/hip_nvidia.cpp $(HIP_NVIDIA_INC)/$(HIP_NVIDIA_HEADER) $(BUILD)/sim/libcudart.so
	@mkdir -p $(@D); echo "  CXX   $@"
	$(HIP_NVIDIA_COMPILE) -L$(BUILD)/sim -lcudart
