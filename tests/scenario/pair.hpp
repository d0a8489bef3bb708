// pair.hpp - a process that exports memory, and one that has it open.
#pragma once

#include "scenario/harness.hpp"

// One exporter with `p` of `size` bytes of 0xa1, and its handle.
struct Exporter : Puppet {
    explicit Exporter(World &world, const How &how = producer(), uint64_t size = big())
        : Puppet(world, how) {
        must("malloc p " + std::to_string(size));
        must("fill p 0xa1 4096");
        must("sync");
        handle = must("get p");
    }
    std::string handle;
};

// Has the exporter's memory open as `q`.
struct Importer : Puppet {
    explicit Importer(World &world, const Exporter &exporter, const How &how = consumer())
        : Puppet(world, how) {
        must("open q " + exporter.handle);
    }
};

// A world of its own for such a pair.
struct Lent {
    explicit Lent(const std::string &configuration = "", const Environment &more = {})
        : world(configuration, more) {
    }
    World world;
    Exporter a{world};
    Importer b{world, a};
};
