# What runs on a machine with an NVIDIA GPU: built here or elsewhere, carried there as build/. Included by the
# top Makefile.
#
# make check-gpu      builds and runs all of it (tests/gpu/check.sh says what, and its parts)
# make gpu-programs   only builds; nvcc is needed, a GPU is not
# make gpu-rehearsal  the same parts on the simulated driver: does the script itself work?
# make gpu-pack       $(BUILD)-gpu: only what check.sh needs, small enough to carry to a machine with a GPU
#                     where nothing can be built; there: tests/gpu/check.sh $(BUILD)-gpu
.PHONY: check-gpu gpu-programs gpu-rehearsal gpu-pack

GPU_HEADERS := $(wildcard tests/gpu/programs/*.hpp)
GPU_NAMES := writer reader stage hello simple_ipc weights pieces
ALONE_NAMES := driver_only vmm_probe fork_probe kinds ends
GPU_PROGRAMS := $(foreach name,$(GPU_NAMES),$(BUILD)/gpu/$(name)_shared $(BUILD)/gpu/$(name)_static) \
	$(addprefix $(BUILD)/gpu/,$(ALONE_NAMES) limiter.so)
GPU_REHEARSED := $(foreach name,$(GPU_NAMES),$(BUILD)/gpu-sim/$(name)_shared $(BUILD)/gpu-sim/$(name)_static) \
	$(addprefix $(BUILD)/gpu-sim/,$(ALONE_NAMES) limiter.so)

gpu-programs: $(GPU_PROGRAMS) $(BUILD)/demo/gpu/producer $(BUILD)/demo/gpu/consumer apps \
	$(BUILD)/tests/gpu/puppet_static $(BUILD)/tests/gpu/misuse_static $(BUILD)/gpu/expected-2.txt
check-gpu: all sim tests conformance gpu-programs bench-programs
	tests/gpu/check.sh $(BUILD)
gpu-rehearsal: all sim conformance apps $(GPU_REHEARSED) $(BUILD)/gpu/expected-2.txt bench-programs
	DRIVER=sim tests/gpu/check.sh $(BUILD)

# Code for Ampere and Hopper, and what newer ones can compile at their start.
GPU_FLAGS := -O2 -std=c++17 -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=[sm_90,compute_90]
$(BUILD)/gpu/%_shared: tests/gpu/programs/%.cu $(GPU_HEADERS)
	@mkdir -p $(@D); echo "  NVCC  $@"
	$(NVCC) $(GPU_FLAGS) -cudart shared $< -o $@
$(BUILD)/gpu/%_static: tests/gpu/programs/%.cu $(GPU_HEADERS)
	@mkdir -p $(@D); echo "  NVCC  $@"
	$(NVCC) $(GPU_FLAGS) -cudart static $< -o $@

# The same sources without kernels.
$(BUILD)/gpu-sim/%_shared: tests/gpu/programs/%.cu $(GPU_HEADERS) $(BUILD)/sim/libcudart.so
	@mkdir -p $(@D); echo "  CXX   $@"
	$(CXX) -x c++ -std=gnu++17 $(DEMO_FLAGS) $< -o $@ -L$(BUILD)/sim -lcudart -pthread
$(BUILD)/gpu-sim/%_static: tests/gpu/programs/%.cu $(GPU_HEADERS) $(BUILD)/sim/libcudart_static.a
	@mkdir -p $(@D); echo "  CXX   $@"
	$(CXX) -x c++ -std=gnu++17 $(DEMO_FLAGS) $< -x none $(BUILD)/sim/libcudart_static.a -o $@ -ldl -pthread

# One binary for both: they ask for libcuda.so.1 and nothing else.
DRIVER_ALONE := $(foreach name,$(ALONE_NAMES),$(BUILD)/gpu/$(name) $(BUILD)/gpu-sim/$(name))
$(DRIVER_ALONE): tests/gpu/programs/must.h $(BUILD)/sim/libcuda.so
	@mkdir -p $(@D); echo "  CC    $@"
	$(CC) -std=gnu11 -D_GNU_SOURCE= $(DEMO_FLAGS) -Wno-unused-parameter tests/gpu/programs/$(@F).c -o $@ -L$(BUILD)/sim -lcuda -ldl
$(foreach name,$(ALONE_NAMES),$(eval $(BUILD)/gpu/$(name) $(BUILD)/gpu-sim/$(name): tests/gpu/programs/$(name).c))

$(BUILD)/gpu/limiter.so $(BUILD)/gpu-sim/limiter.so: tests/gpu/programs/limiter.c
	@mkdir -p $(@D); echo "  CC    $@"
	$(CC) -std=gnu11 -D_GNU_SOURCE= $(DEMO_FLAGS) -shared -fPIC $< -o $@ -ldl

$(BUILD)/gpu/expected-2.txt: $(BUILD)/tests/conformance tests/gpu/expected.sh | sim
	@echo "  PLAY  $@"
	tests/gpu/expected.sh $(BUILD)

# The applications keep their debug information, which the findings' tests look at.
GPU_PACK := $(BUILD)-gpu
gpu-pack: all sim tests conformance gpu-programs bench-programs
	rm -rf $(GPU_PACK)
	mkdir -p $(GPU_PACK)/tests $(GPU_PACK)/demo $(GPU_PACK)/bench
	cp -a $(BUILD)/gpushare $(BUILD)/libgpushare.so $(BUILD)/gpu $(GPU_PACK)
	cp -a $(BUILD)/demo/gpu $(GPU_PACK)/demo
	cp -a $(addprefix $(BUILD)/bench/,busy calls empty.so registry store timed) $(GPU_PACK)/bench
	cp -a $(addprefix $(TESTS)/,apps gpu scenario conformance soak-worker differ-program fault-inject) $(GPU_PACK)/tests
	strip -g $(GPU_PACK)/tests/scenario
	du -sh $(GPU_PACK)
