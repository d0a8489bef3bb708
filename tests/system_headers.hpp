// system_headers.hpp - the headers of the system that most tests include, compiled once for all of
// them (tests.mk). Each file still includes what it needs.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>
