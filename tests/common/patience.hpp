// patience.hpp - how long tests wait before they call something late.
//
// TEST_PATIENCE=n in the environment: n times as long, for slow machines; 1 without. make sets 4
// for a build with a sanitizer.
#pragma once

inline int patience() {
    static const int factor = [] {
        const char *const given = getenv("TEST_PATIENCE");
        return given && atoi(given) > 0 ? atoi(given) : 1;
    }();
    return factor;
}

inline int patient(int ms) {
    return ms * patience();
}

// Until `condition` holds; false when it did not in patient(ms).
inline bool eventually(const std::function<bool()> &condition, int ms = 20000) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(patient(ms));
    while (!condition()) {
        if (std::chrono::steady_clock::now() > until)
            return false;
        usleep(5000);
    }
    return true;
}
