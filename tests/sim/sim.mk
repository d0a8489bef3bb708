# The simulated driver and runtime; see tests/sim/README.md. Included by the top Makefile, and works
# alone: make -f tests/sim/sim.mk sim
SIM := $(patsubst %/,%,$(dir $(lastword $(MAKEFILE_LIST))))
CC ?= cc
AR ?= ar
BUILD ?= build
CUDA_INC ?= /usr/local/cuda/include
NVCC ?= nvcc
SIM_AR ?= $(if $(findstring -linux-gnu,$(CC)),$(firstword $(subst -gcc, ,$(notdir $(CC))))-ar,$(AR))
# What it does not use of a signature is the driver's.
SIM_CFLAGS = -std=gnu11 -D_GNU_SOURCE -O2 -g -fPIC -pthread -Wall -Wextra -Wno-unused-parameter -Wconversion -Wshadow \
	-Werror -isystem $(CUDA_INC) $(CFLAGS_COMMON) $(SIM_EXTRA)
SIM_OUT = $(BUILD)/sim

sim_objects = $(patsubst $(SIM)/%.c,$(SIM_OUT)/obj/%.o,$(wildcard $(SIM)/$(1)/*.c))
SIM_DRIVER := $(call sim_objects,driver)
SIM_DAEMON := $(call sim_objects,daemon)
SIM_RUNTIME := $(call sim_objects,runtime)
SIM_RUNTIME_STATIC := $(patsubst %.o,%.static.o,$(SIM_RUNTIME))

# Where AMD's headers are, which Debian has (libamdhip64-dev). Behind all others, so that they do for a cross compiler, too.
HIP_INC ?= $(patsubst %/hip/hip_runtime_api.h,%,$(firstword $(wildcard \
	/usr/include/hip/hip_runtime_api.h /opt/rocm/include/hip/hip_runtime_api.h)))
SIM_HIP := $(if $(HIP_INC),$(foreach generation,6 7,$(SIM_OUT)/hip$(generation)/libamdhip64.so))

.PHONY: sim conformance sim-stress
sim: $(SIM_OUT)/libcuda.so $(SIM_OUT)/gpusimd $(SIM_OUT)/libcudart.so $(SIM_OUT)/libcudart_static.a $(SIM_HIP)
conformance: $(BUILD)/tests/conformance $(BUILD)/tests/hip-conformance
sim-stress: $(BUILD)/tests/sim-stress

$(SIM_OUT)/obj/driver/%.o: $(SIM)/driver/%.c
	@mkdir -p $(@D)
	$(CC) $(SIM_CFLAGS) -fvisibility=hidden -MMD -c $< -o $@

$(SIM_OUT)/obj/daemon/%.o: $(SIM)/daemon/%.c
	@mkdir -p $(@D)
	$(CC) $(SIM_CFLAGS) -MMD -c $< -o $@

# NVIDIA's functions keep their frames while they call their own, too.
$(SIM_OUT)/obj/runtime/%.static.o: $(SIM)/runtime/%.c
	@mkdir -p $(@D)
	$(CC) $(SIM_CFLAGS) -fno-optimize-sibling-calls -fvisibility=hidden -MMD -c $< -o $@

$(SIM_OUT)/obj/runtime/%.o: $(SIM)/runtime/%.c
	@mkdir -p $(@D)
	$(CC) $(SIM_CFLAGS) -MMD -c $< -o $@

# AMD's runtime, of two generations, each in a folder of its own. It is built from the driver's objects.
define SIM_HIP_OBJECTS
$(SIM_OUT)/obj/hip$(1)/%.o: $(SIM)/hip/%.c
	@mkdir -p $$(@D)
	$$(CC) $$(SIM_CFLAGS) -idirafter $(HIP_INC) -DHIP_GENERATION=$(1) -fvisibility=hidden -MMD -c $$< -o $$@
endef
$(foreach generation,6 7,$(eval $(call SIM_HIP_OBJECTS,$(generation))))

define SIM_HIP_ROW
$(SIM_OUT)/hip$(1)/libamdhip64.so.$(1): $(patsubst $(SIM)/hip/%.c,$(SIM_OUT)/obj/hip$(1)/%.o,$(wildcard $(SIM)/hip/*.c)) \
		$(SIM_DRIVER) $(SIM)/hip/hip$(1).map $(SIM_OUT)/gpusimd
	@mkdir -p $$(@D)
	ln -sf ../gpusimd $$(@D)/gpusimd
	$$(CC) $$(SIM_CFLAGS) -shared -Wl,-soname,libamdhip64.so.$(1) -Wl,-z,nodelete -Wl,-Bsymbolic \
		-Wl,--version-script=$(SIM)/hip/hip$(1).map $$(filter %.o,$$^) -o $$@ -ldl -lrt
$(SIM_OUT)/hip$(1)/libamdhip64.so: $(SIM_OUT)/hip$(1)/libamdhip64.so.$(1)
	ln -sf $$(notdir $$<) $$@
endef
$(foreach generation,6 7,$(eval $(call SIM_HIP_ROW,$(generation))))

# Bound to themselves, as the real ones are: what cuGetProcAddress gives out is the library's own.
$(SIM_OUT)/libcuda.so.1: $(SIM_DRIVER) $(SIM)/driver/exports.map
	$(CC) $(SIM_CFLAGS) -shared -Wl,-soname,libcuda.so.1 -Wl,-z,nodelete -Wl,-Bsymbolic \
		-Wl,--version-script=$(SIM)/driver/exports.map $(SIM_DRIVER) -o $@ -ldl

$(SIM_OUT)/gpusimd: $(SIM_DAEMON)
	$(CC) $(SIM_CFLAGS) $(SIM_DAEMON) -o $@

$(SIM_OUT)/libcudart.so.13: $(SIM_RUNTIME) $(SIM)/runtime/exports.map
	$(CC) $(SIM_CFLAGS) -shared -Wl,-soname,libcudart.so.13 -Wl,-Bsymbolic \
		-Wl,--version-script=$(SIM)/runtime/exports.map $(SIM_RUNTIME) -o $@ -ldl

$(SIM_OUT)/libcudart_static.a: $(SIM_RUNTIME_STATIC)
	rm -f $@
	$(SIM_AR) rcs $@ $^

$(SIM_OUT)/libcuda.so $(SIM_OUT)/libcudart.so: %.so:
	ln -sf $(notdir $<) $@
$(SIM_OUT)/libcuda.so: $(SIM_OUT)/libcuda.so.1
$(SIM_OUT)/libcudart.so: $(SIM_OUT)/libcudart.so.13

$(BUILD)/tests/conformance: $(wildcard $(SIM)/conformance/*.c) $(wildcard $(SIM)/conformance/*.h) \
		| $(BUILD)/tests/apps/kernels.ptx
	@mkdir -p $(@D)
	$(CC) $(SIM_CFLAGS) $(filter %.c,$^) -o $@ -ldl

# It finds the runtime itself, and needs none of AMD's headers.
$(BUILD)/tests/hip-conformance: $(wildcard $(SIM)/hip/conformance/*.[ch]) $(addprefix $(SIM)/conformance/,check.c peer.c check.h peer.h) \
		$(SIM)/../../shim/hip/hip_abi.h
	@mkdir -p $(@D)
	$(CC) $(SIM_CFLAGS) $(filter %.c,$^) -o $@ -ldl

# Without nvcc, what the simulator looks for, and no more.
$(BUILD)/tests/apps/kernels.ptx: $(SIM)/../apps/kernels.cu
	@mkdir -p $(@D); echo "  PTX   $@"
	if command -v $(NVCC) >/dev/null; then $(NVCC) -ptx -arch=compute_80 $< -o $@; else \
		{ echo '.version 8.0'; sed -n 's/^extern "C" __global__ void \(\w*(\).*/.visible .entry \1)/p' $<; } >$@; fi

$(BUILD)/tests/sim-stress: $(SIM)/stress/stress.c $(SIM)/conformance/gpu.c $(SIM)/conformance/lane.c \
		$(SIM)/protocol.h
	@mkdir -p $(@D)
	$(CC) $(SIM_CFLAGS) $(filter %.c,$^) -o $@ -ldl

-include $(wildcard $(SIM_OUT)/obj/hip*/*.d)
-include $(SIM_DRIVER:.o=.d) $(SIM_DAEMON:.o=.d) $(SIM_RUNTIME:.o=.d) $(SIM_RUNTIME_STATIC:.o=.d)
