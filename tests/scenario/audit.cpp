// audit.cpp - see audit.hpp.
#include "scenario/audit.hpp"

std::vector<std::string> Event::priors() const {
    std::vector<std::string> texts;
    for (const Json &prior : json["prior"].elements)
        texts.push_back(prior["what"].text +
                        (static_cast<uint32_t>(prior["pid"].number) == pid ? "" : "*"));
    return texts;
}

std::vector<std::string> Audit::ids() const {
    std::vector<std::string> all;
    for (const Event &event : events)
        all.push_back(event.id);
    std::sort(all.begin(), all.end());
    return all;
}

static std::string program(const std::string &name) {
    const bool nvidias = on_gpu() && name == "misuse_static";
    return build_directory() + (nvidias ? "/tests/gpu/" : "/tests/apps/") + for_vendor(name);
}

Words misuse(const std::string &id, bool right, const std::string &build) {
    return right ? Words{build, "--right", id} : Words{build, id};
}

static Words command_line(const Words &words, const Words &before) {
    Words line = before;
    line.push_back(program(words[0]));
    line.insert(line.end(), words.begin() + 1, words.end());
    return line;
}

Result run_alone(const World &world, const Words &words) {
    return command(command_line(words, {"timeout", "60"}), world.environment);
}

// The shell's pid is then the program's.
Audit run_audited(World &world, const Words &words, const std::string &mode) {
    const std::string pid_file = world.path("pid");
    Environment environment = world.environment;
    environment["GPUSHARE_MODE"] = mode;
    environment["GPUSHARE_LOG_LEVEL"] = "info";
    const std::string earlier = world.logs();
    Audit audit;
    audit.result = command(
        command_line(words, {"timeout", "60", "sh", "-c", "echo $$ >\"$0\"; exec env \"$@\"",
                             pid_file, "LD_PRELOAD=" + library()}),
        environment);
    audit.pid = static_cast<uint32_t>(std::stoul("0" + read_file(pid_file)));
    audit.log = world.logs();
    if (audit.log.compare(0, earlier.size(), earlier) == 0)
        audit.log.erase(0, earlier.size());
    audit.events = events_of(audit.log);
    return audit;
}

// What is missing is null from here on, as if it were not known.
static void check_keys(Json &json) {
    std::string missing;
    for (const char *key :
         {"ts",      "pid",  "pid_ns", "tid",    "command", "arguments", "level",   "finding",
          "api",     "ptr",  "size",   "region", "name",    "device",    "context", "site",
          "message", "hint", "count",  "stack",  "prior",   "detail",    "others"})
        if (json.members.emplace(key, Json()).second)
            missing += std::string(" ") + key;
    EXPECT_EQ(missing, "");
    for (Json &other : json.members["others"].elements)
        other.members.emplace("pid_ns", Json());
}

static std::string text_of(const Json &json, const char *key) {
    return json.has(key) && json[key].kind == Json::String ? json[key].text : "";
}

std::vector<Event> events_of(const std::string &log) {
    std::vector<Event> events;
    std::set<std::string> sites;
    std::istringstream lines(log);
    for (std::string line; std::getline(lines, line);) {
        Event event;
        event.json = Json::parse(line);
        check_keys(event.json);
        event.id = text_of(event.json, "finding");
        if (event.id.empty())
            continue;
        event.level = text_of(event.json, "level");
        event.api = text_of(event.json, "api");
        event.detail = text_of(event.json, "detail");
        event.pid = static_cast<uint32_t>(event.json["pid"].number);
        event.site = text_of(event.json, "site");
        // the repeats of a site, summed up at the end, are no events of their own
        const bool repeat = event.json["count"].number > 1 || event.json["stack"].size() == 0;
        if (!repeat || event.site.empty() || sites.insert(event.site).second)
            events.push_back(event);
        sites.insert(event.site);
    }
    std::stable_sort(events.begin(), events.end(), [](const Event &a, const Event &b) {
        return text_of(a.json, "ts") < text_of(b.json, "ts");
    });
    return events;
}

uint32_t own_pid_namespace() {
    struct stat status = {};
    stat("/proc/self/ns/pid", &status);
    return static_cast<uint32_t>(status.st_ino);
}
