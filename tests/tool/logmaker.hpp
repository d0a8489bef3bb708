// logmaker.hpp - lines of a log by hand, after docs/log.schema.json.
#pragma once

// As JSON: a string with quotes, or null.
inline std::string quoted(const std::string &text) {
    return text.empty() ? "null" : "\"" + text + "\"";
}

inline std::string frame(const std::string &module, const std::string &offset,
                         const std::string &build_id = "") {
    return "{\"module\":" + quoted(module) + ",\"offset\":\"" + offset +
           "\",\"build_id\":" + quoted(build_id) + "}";
}

inline std::string python(const std::string &file, int line, const std::string &function) {
    std::string text = frame("", "0x0");
    text.pop_back();
    return text + ",\"file\":" + quoted(file) +
           ",\"line\":" + (line > 0 ? std::to_string(line) : "null") +
           ",\"function\":" + quoted(function) + "}";
}

struct LogLine {
    int second = 1, micro = 0; // of one minute
    int pid = 100;
    std::string pid_ns = "4026531836", command = "app", level = "error", finding = "double-free",
                api = "cudaFree", name, detail, site = "0123456789abcdef", stack, prior, others;
    int count = 1;
    std::string arguments, rank = "null";

    std::string text() const {
        char ts[32];
        snprintf(ts, sizeof(ts), "2026-11-21T02:34:%02d.%06dZ", second, micro);
        return "{\"ts\":" + quoted(ts) + ",\"pid\":" + std::to_string(pid) +
               ",\"pid_ns\":" + pid_ns + ",\"tid\":" + std::to_string(pid) +
               ",\"command\":" + quoted(command) + ",\"arguments\":" + quoted(arguments) +
               ",\"rank\":" + rank + ",\"level\":" + quoted(level) +
               ",\"finding\":" + quoted(finding) + ",\"api\":" + quoted(api) +
               ",\"ptr\":\"0x7f0000000000\",\"size\":67108864" +
               ",\"region\":null,\"name\":" + quoted(name) +
               ",\"device\":0,\"context\":\"0x55d0\",\"message\":\"what happened\"" +
               ",\"hint\":\"what to change\",\"count\":" + std::to_string(count) +
               ",\"site\":" + quoted(site) + ",\"stack\":[" + stack + "],\"prior\":[" + prior +
               "],\"detail\":" + quoted(detail) + ",\"others\":[" + others + "]}\n";
    }
};

inline std::string prior(const std::string &what, int pid, const std::string &command,
                         const std::string &stack) {
    return "{\"pid\":" + std::to_string(pid) +
           ",\"pid_ns\":4026531836,\"command\":" + quoted(command) + ",\"what\":" + quoted(what) +
           ",\"ts\":\"2026-11-21T02:33:00.000000Z\",\"stack\":[" + stack + "]}";
}
