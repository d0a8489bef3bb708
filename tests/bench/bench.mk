# What gpushare costs, in pairs with bare CUDA; on the simulated driver unless there is a GPU. Included by the
# top Makefile.
#
# make bench                ROUNDS=n pairs, 7; a table, and build/bench/result.json
# make bench-busy           how soon servers that are never idle are merged, and what their requests notice
# make bench-instructions   instructions a call on the simulated driver: what noise hides
# make bench-docs           the tables of docs/measured.md and its plots from RESULT (build/bench/result.json)
# make replicas-docs        the table of docs/replicas.md, and docs/savings.svg, from RESULTS (build/gpu-results)
.PHONY: bench bench-busy bench-programs bench-instructions bench-docs replicas-docs

BENCH := $(BUILD)/bench
ROUNDS ?= 7
RESULT ?= $(BENCH)/result.json
RESULTS ?= $(BUILD)/gpu-results
INSTRUCTIONS ?= $(BENCH)/instructions.json
bench-programs: $(BENCH)/busy $(BENCH)/calls $(BENCH)/empty.so $(BENCH)/registry $(BENCH)/store $(BENCH)/slots $(BENCH)/timed/libgpushare.so

bench: all sim bench-programs
	tests/bench/bench.py $(BUILD) --driver $(DEMO_DRIVER) --rounds $(ROUNDS)
bench-busy: all sim apps bench-programs
	tests/bench/busy.py $(BUILD) --driver $(DEMO_DRIVER)
bench-instructions: all sim bench-programs
	tests/bench/instructions.py $(BUILD)
bench-docs:
	tests/bench/tables.py docs/measured.md $(RESULT) $(wildcard $(INSTRUCTIONS))
	tests/bench/plot.py $(RESULT) docs
	tests/bench/savings.py
	tests/bench/overhead.py
replicas-docs:
	tests/bench/replicas_table.py $(RESULTS) docs/replicas.md
	tests/bench/savings.py

CALLS := $(patsubst %,tests/bench/%.c,calls measure sample exporter paths launch mappings live)
$(BENCH)/calls: $(CALLS) tests/bench/measure.h tests/bench/sample.h $(BUILD)/sim/libcudart.so
	@mkdir -p $(@D); echo "  CC    $@"
	$(CC) -std=gnu11 -D_GNU_SOURCE= $(DEMO_FLAGS) $(CALLS) -o $@ -L$(BUILD)/sim -lcudart -ldl
$(BENCH)/busy: tests/bench/busy.c
	@mkdir -p $(@D); echo "  CC    $@"
	$(CC) -std=gnu11 -D_GNU_SOURCE= $(DEMO_FLAGS) $< -o $@ -ldl -lpthread
# Two of the library's rooms alone.
$(BENCH)/registry $(BENCH)/store $(BENCH)/slots: $(BENCH)/%: tests/bench/%.c tests/bench/sample.c $(BUILD)/libgpushare_parts.a
	@mkdir -p $(@D); echo "  CC    $@"
	$(CC) $(C_FLAGS) $< tests/bench/sample.c $(BUILD)/libgpushare_parts.a -o $@
# The library with clocks in load.c.
$(BENCH)/timed/load.o: shim/merge/load.c
	@mkdir -p $(@D); echo "  CC    $@"
	$(CC) $(C_FLAGS) -fPIC -fvisibility=hidden -fno-inline -finstrument-functions -finstrument-functions-exclude-file-list=.h -c $< -o $@
$(BENCH)/timed/timed.o: tests/bench/timed.c
	@mkdir -p $(@D); echo "  CC    $@"
	$(CC) $(C_FLAGS) -fPIC -fvisibility=hidden -c $< -o $@
$(BENCH)/timed/libgpushare.so: $(filter-out $(BUILD)/shim/merge/load.o,$(SHIM_OBJECTS)) $(LIBRARY_COMPAT) $(BENCH)/timed/load.o $(BENCH)/timed/timed.o $(BUILD)/exports.map
	@echo "  LINK  $@"
	$(LINK_LIBRARY)
$(BENCH)/empty.so:
	@mkdir -p $(@D)
	echo | $(CC) -x c -shared -fPIC - -o $@
