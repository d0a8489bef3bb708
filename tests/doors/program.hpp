// program.hpp - runs a program bare or with the library preloaded, and tells what it did.
//
// Every run has a published directory and a log of its own. The simulated driver is found by
// LD_LIBRARY_PATH; GPUSHARE_TEST_DRIVER names another directory for it ("" leaves the system's).
#pragma once

struct Finding {
    std::string id, api;
    bool operator==(const Finding &other) const {
        return id == other.id && api == other.api;
    }
};
std::ostream &operator<<(std::ostream &out, const Finding &finding);

struct Outcome {
    int status = -1; // exit status, 128 + signal, or -1: it hung and was killed
    std::string out, err, log;
    std::vector<Finding> findings;
    std::vector<std::string> left; // files in the published directory when it had ended
    bool has(const std::string &id, const std::string &api = "") const;
};

class Program {
  public:
    explicit Program(std::vector<std::string> words);
    Program &preload(const std::string &library); // in the order of the calls
    Program &environment(const std::string &name, const std::string &value);
    Program &without_driver();
    Program &seconds(int limit);
    Outcome run() const;      // with the library, at its place among the preloaded: see gpushare()
    Outcome run_bare() const; // without
    Program &gpushare();      // where the library stands; after the others unless said

  private:
    Outcome run_with(const std::vector<std::string> &libraries) const;
    std::vector<std::string> words, libraries;
    std::map<std::string, std::string> variables;
    bool driver = true;
    int limit = 60;
};

std::string build_directory();
std::string library_path();               // of libgpushare.so
std::string app(const std::string &name); // build/tests/doors.d/NAME
std::string output_of(const std::string &shell_command);
std::vector<std::string> lines_of(const std::string &text);
// The names in hooks.def and the doors of trampoline.S, sorted.
std::vector<std::string> hooked_names();
std::vector<std::string> driver_names(); // in every program
// Of these kinds: "write" where a rule asks for copies; "read" there, and with open_cache; "wait"
// where a rule merges; "told" where any rule is for the program; and "merge", "event", "runtime".
std::vector<std::string> names_of(const std::set<std::string> &kinds);
