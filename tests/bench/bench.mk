# What gpushare costs, in pairs with bare CUDA; on the simulated driver unless there is a GPU. Included by the
# top Makefile.
#
# make bench                ROUNDS=n pairs, 7; a table, and build/bench/result.json
# make bench-instructions   instructions a call on the simulated driver: what noise hides
# make bench-docs           docs/measured.md and its plots from RESULT (build/bench/result.json)
# make replicas-docs        the table of docs/replicas.md, and docs/savings.svg, from RESULTS (build/gpu-results)
.PHONY: bench bench-programs bench-instructions bench-docs replicas-docs

BENCH := $(BUILD)/bench
ROUNDS ?= 7
RESULT ?= $(BENCH)/result.json
RESULTS ?= $(BUILD)/gpu-results
INSTRUCTIONS ?= $(BENCH)/instructions.json
bench-programs: $(BENCH)/calls $(BENCH)/empty.so $(BENCH)/registry $(BENCH)/store

bench: all sim bench-programs
	tests/bench/bench.py $(BUILD) --driver $(DEMO_DRIVER) --rounds $(ROUNDS)
bench-instructions: all sim bench-programs
	tests/bench/instructions.py $(BUILD)
bench-docs:
	tests/bench/tables.py $(RESULT) $(wildcard $(INSTRUCTIONS)) >docs/measured.md
	tests/bench/plot.py $(RESULT) docs
	tests/bench/savings.py
	tests/bench/overhead.py
replicas-docs:
	tests/bench/replicas_table.py $(RESULTS) docs/replicas.md
	tests/bench/savings.py

CALLS := $(patsubst %,tests/bench/%.c,calls measure exporter paths launch live)
$(BENCH)/calls: $(CALLS) tests/bench/measure.h $(BUILD)/sim/libcudart.so
	@mkdir -p $(@D); echo "  CC    $@"
	$(CC) -std=gnu11 -D_GNU_SOURCE= $(DEMO_FLAGS) $(CALLS) -o $@ -L$(BUILD)/sim -lcudart -ldl
# Two of the library's rooms alone.
$(BENCH)/registry $(BENCH)/store: $(BENCH)/%: tests/bench/%.c $(BUILD)/libgpushare_parts.a
	@mkdir -p $(@D); echo "  CC    $@"
	$(CC) $(C_FLAGS) $< $(BUILD)/libgpushare_parts.a -o $@
$(BENCH)/empty.so:
	@mkdir -p $(@D)
	echo | $(CC) -x c -shared -fPIC - -o $@
