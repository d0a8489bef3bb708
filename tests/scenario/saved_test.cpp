// What merging saves, as ls tells it while the programs run.
#include "scenario/harness.hpp"

namespace {

// The one line of ls for merged blocks; null while there is none.
Json merged(const World &world) {
    const Json list = world.ls();
    for (const Json &each : list.elements)
        if (each["state"].text == "merged")
            return each;
    return {};
}

bool says(const World &world, uint64_t size, uint64_t mapped, uint64_t saved, uint64_t own) {
    const Json gpu = merged(world);
    return gpu.kind == Json::Object && gpu["size"].number == double(size) &&
           gpu["mapped"].number == double(mapped) && gpu["saved"].number == double(saved) &&
           gpu["own"].number == double(own);
}

void load(Puppet &puppet) {
    puppet.must("malloc p " + std::to_string(6 * MiB));
    puppet.must("upload p 0 " + std::to_string(6 * MiB) + " 1 sync");
}

TEST(Saved, GrowsAndShrinksWithWhatIsEqual) {
    World world(rule("weights", "puppet", "merge", "quiet = 200ms\n"));
    Puppet one(world), two(world);
    load(one);
    EXPECT_TRUE(eventually([&] { return says(world, 6 * MiB, 6 * MiB, 0, 0); })) << "alone";
    load(two);
    EXPECT_TRUE(eventually([&] { return says(world, 6 * MiB, 12 * MiB, 6 * MiB, 0); }));
    two.must("malloc q " + std::to_string(4 * MiB)); // nothing uploads it
    EXPECT_TRUE(eventually([&] { return says(world, 6 * MiB, 12 * MiB, 6 * MiB, 4 * MiB); }));
    two.must("free q");
    EXPECT_TRUE(eventually([&] { return says(world, 6 * MiB, 12 * MiB, 6 * MiB, 0); }))
        << "what is freed is no process's own";
    one.must("free p");
    EXPECT_TRUE(eventually([&] { return says(world, 6 * MiB, 6 * MiB, 0, 0); }));
    EXPECT_EQ(merged(world)["users"].size(), 1u);
    two.must("free p");
    EXPECT_TRUE(eventually([&] { return merged(world).kind == Json::Null; }));
}

} // namespace
