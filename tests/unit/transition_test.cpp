extern "C" {
#include "util/transition.h"
}

namespace {

enum { OPEN, SHUT, GONE };
const gps_state_row doors[] = {
    {"OPEN", GPS_TO(SHUT)}, {"SHUT", GPS_TO(OPEN) | GPS_TO(GONE)}, {"GONE", GPS_TO_NONE}};

TEST(Transition, AViolationEndsATestAndNamesBothStates) {
    const std::string file = testing::TempDir() + "checks." + std::to_string(getpid());
    EXPECT_DEATH(
        {
            setenv("GPUSHARE_ASSERTIONS", file.c_str(), 1);
            gps_transition_check("door", doors, OPEN, GONE);
        },
        "assertion failed: door: OPEN -> GONE");
    std::stringstream text;
    text << std::ifstream(file).rdbuf();
    EXPECT_EQ(text.str(), "gpushare: assertion failed: door: OPEN -> GONE\n");
    unlink(file.c_str());
}

TEST(Transition, AViolationDoesNothingInAProgramOfAUsers) {
    const char *tests = getenv("GPUSHARE_ASSERTIONS");
    const std::string path = tests ? tests : "";
    unsetenv("GPUSHARE_ASSERTIONS");
    gps_transition_check("door", doors, GONE, OPEN);
    if (tests)
        setenv("GPUSHARE_ASSERTIONS", path.c_str(), 1);
}

} // namespace
