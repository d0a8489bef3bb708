// skip.hpp - tests that cannot be had here say why.
#pragma once

#define SKIP_IF(condition, why)                                                                    \
    do {                                                                                           \
        if (condition)                                                                             \
            GTEST_SKIP() << why;                                                                   \
    } while (0)
