// gpushare cdi: a device that brings gpushare into containers.
#include "harness.hpp"

namespace {

class Cdi : public testing::Test {
  protected:
    Cdi() {
        environment = shared.environment();
        environment["GPUSHARE_LIBRARY"] = shared.root.file("libgpushare.so", "x");
        environment["XDG_CONFIG_HOME"] = environment["HOME"] = shared.root.path;
    }
    Result cdi(std::vector<std::string> more = {}) {
        more.insert(more.begin(), "cdi");
        return tool(more, environment);
    }
    // Where on the host that lies which a container sees at `path`; "" when nothing does.
    static std::string mounted(const Json &device, const std::string &path) {
        const Json &mounts = device["containerEdits"]["mounts"];
        for (size_t i = 0; i < mounts.size(); i++)
            if (mounts[i]["containerPath"].text == path)
                return mounts[i]["hostPath"].text;
        return "";
    }
    Shared shared;
    Environment environment;
};

TEST_F(Cdi, BringsAllThatAProgramNeeds) {
    const Result result = cdi();
    ASSERT_EQ(result.status, 0) << result.err;
    const Json all = Json::parse(result.out);
    EXPECT_EQ(all["cdiVersion"].text, "0.5.0");
    EXPECT_EQ(all["kind"].text, "gpushare.io/namespace");
    ASSERT_EQ(all["devices"].size(), 1u);
    const Json &device = all["devices"][0];
    const std::string root = environment.at("GPUSHARE_DIR");
    EXPECT_EQ(mounted(device, "/usr/local/lib/libgpushare.so"), environment["GPUSHARE_LIBRARY"]);
    EXPECT_HAS(mounted(device, "/usr/local/bin/gpushare"), "gpushare");
    EXPECT_EQ(mounted(device, "/run/gpushare"), root);
    EXPECT_EQ(read_file(mounted(device, "/etc/ld.so.preload")), "/usr/local/lib/libgpushare.so\n");
    EXPECT_EQ(device["containerEdits"]["env"][0].text, "GPUSHARE_DIR=/run/gpushare");
    EXPECT_LACKS(result.out, "LD_PRELOAD") << "it would replace the user's own";
}

TEST_F(Cdi, EveryUserOfTheContainerMayReadThePreload) {
    const mode_t before = umask(077);
    ASSERT_EQ(cdi().status, 0);
    umask(before);
    struct stat info = {};
    ASSERT_EQ(stat((environment["GPUSHARE_DIR"] + "/ld.so.preload").c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0644u);
}

TEST_F(Cdi, ANamespaceIsADevice) {
    const Json all = Json::parse(cdi({"--namespace", "blue"}).out);
    EXPECT_EQ(all["devices"][0]["name"].text, "blue");
    EXPECT_EQ(all["devices"][0]["containerEdits"]["env"][1].text, "GPUSHARE_NAMESPACE=blue");
    for (const char *name : {"../blue", "", "-blue", "blue-", "_", "b l", "a:b"}) {
        const Result wrong = cdi({"--namespace", name});
        EXPECT_ERR_HAS(wrong, 1, "begin and end with a letter or digit");
        EXPECT_EQ(wrong.out, "");
    }
}

TEST_F(Cdi, TheConfigurationThatIsReadHereIsReadThere) {
    EXPECT_EQ(mounted(Json::parse(cdi().out)["devices"][0], "/etc/gpushare.conf"), "");
    environment["GPUSHARE_CONFIG"] = shared.root.file("my.conf", "[gpushare]\nmode = audit\n");
    EXPECT_EQ(mounted(Json::parse(cdi().out)["devices"][0], "/etc/gpushare.conf"),
              environment["GPUSHARE_CONFIG"]);
    environment["GPUSHARE_CONFIG"] = shared.root.file("bad.conf", "[gpushare]\nmode = blue\n");
    const Result wrong = cdi();
    EXPECT_ERR_HAS(wrong, 1, "bad.conf:2");
    EXPECT_EQ(wrong.out, "");
}

TEST_F(Cdi, GoesIntoAFile) {
    const std::string path = shared.root.path + "/gpushare.json";
    EXPECT_OUT(cdi({"-o", path}), 0, "");
    EXPECT_EQ(Json::parse(read_file(path))["cdiVersion"].text, "0.5.0");
    EXPECT_ERR_HAS(cdi({"-o", shared.root.path + "/none/gpushare.json"}), 1, "cannot write");
    const Result full = command({"sh", "-c", "\"$0\" cdi >/dev/full", tool_path()}, environment);
    EXPECT_ERR(full, 1, "gpushare: cdi: cannot write the output: No space left on device\n");
}

TEST_F(Cdi, SaysWhatIsMissing) {
    environment["GPUSHARE_LIBRARY"] = "/nowhere/libgpushare.so";
    EXPECT_HAS(cdi().err, "libgpushare.so not found");
    environment["GPUSHARE_DIR"] = "relative";
    EXPECT_ERR_HAS(cdi(), 1, "absolute");
}

} // namespace
