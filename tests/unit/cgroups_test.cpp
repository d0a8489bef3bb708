// The pod, container and Slurm job that cgroups name.
extern "C" {
#include "directory/cgroups.h"
}

namespace {

const std::string id(64, 'a'), other(64, 'b');
const char *const uid = "0f9e2f9c-6f7c-4a57-9d3e-1a2b3c4d5e6f";
const char *const uid_ = "0f9e2f9c_6f7c_4a57_9d3e_1a2b3c4d5e6f";

// "pod container job step", "-" where there is none.
std::string read(std::string text) {
    cgroups found;
    cgroups_parse(text.data(), &found);
    std::string all;
    for (const char *one : {found.pod, found.container, found.slurm_job, found.slurm_step})
        all += (all.empty() ? "" : " ") + std::string(*one ? one : "-");
    return all;
}

} // namespace

TEST(Cgroups, NameContainers) {
    const std::string container = "- " + id + " - -";
    for (const std::string &path :
         {"/docker/" + id,                                    // cgroup v1
          "/system.slice/docker-" + id + ".scope",            // cgroup v2, systemd
          "/system.slice/docker-" + id + ".scope/init.scope", // systemd within
          "/docker/" + other + "/docker/" + id,               // docker in docker
          "/default/" + id,                                   // containerd
          "/machine.slice/libpod-" + id + ".scope",           // podman
          "/machine.slice/libpod-" + id + ".scope/container", // podman, cgroup v2
          "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" + id + ".scope",
          "/libpod_parent/libpod-" + id, "/machine.slice/crio-" + id + ".scope",
          "/../../docker/" + id}) { // from another container
        EXPECT_EQ(read("0::" + path + "\n"), container) << path;
        EXPECT_EQ(read("12:cpu,cpuacct:" + path + "\n1:name=systemd:" + path + "\n0::/\n"),
                  container)
            << path;
    }
}

TEST(Cgroups, NamePods) {
    const std::string pod = std::string(uid) + " " + id + " - -";
    const std::string slice = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod";
    for (const std::string &path :
         {"/kubepods/burstable/pod" + std::string(uid) + "/" + id,
          "/kubepods/pod" + std::string(uid) + "/" + id,
          slice + uid_ + ".slice/cri-containerd-" + id + ".scope",
          slice + uid_ + ".slice/crio-" + id + ".scope",
          slice + uid_ + ".slice/crio-" + id + ".scope/container",
          slice + uid_ + ".slice/docker-" + id + ".scope",
          "/kubepods.slice/kubepods-pod" + std::string(uid_) + ".slice/cri-containerd-" + id +
              ".scope",
          "/system.slice/containerd.service/kubepods-besteffort-pod" + std::string(uid_) +
              ".slice:cri-containerd:" + id,
          "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" + std::string(uid_) +
              ".slice/cri-containerd-" + id + ".scope"})
        EXPECT_EQ(read("0::" + path + "\n"), pod) << path;
    const std::string hash = "5f1c1e0a5f1c1e0a5f1c1e0a5f1c1e0a"; // of a static pod
    EXPECT_EQ(read("0::/kubepods/besteffort/pod" + hash + "/" + id), hash + " " + id + " - -");
}

TEST(Cgroups, NameSlurmJobs) {
    EXPECT_EQ(read("4:memory:/slurm/uid_1000/job_123/step_0/task_0\n"), "- - 123 0");
    EXPECT_EQ(read("4:memory:/slurm_node1/uid_1000/job_7/step_batch\n"), "- - 7 batch");
    EXPECT_EQ(read("0::/system.slice/slurmstepd.scope/job_42/step_extern/user/task_0\n"),
              "- - 42 extern");
    EXPECT_EQ(read("0::/system.slice/node1_slurmstepd.scope/job_42/step_3/user\n"), "- - 42 3");
    EXPECT_EQ(read("0::/system.slice/slurmstepd.scope/job_42/step_3/user/" + id),
              "- " + id + " 42 3");
}

TEST(Cgroups, NameNothingElse) {
    for (const std::string &text :
         {std::string(), std::string("0::/\n"), std::string("0::"), std::string("no lines\n::"),
          std::string("0::/user.slice/user-1000.slice/session-2.scope\n"),
          "0::/machine.slice/libpod-conmon-" + id + ".scope\n",
          "0::/crio-conmon-" + id + ".scope\n", "0::/docker/" + id.substr(1),
          "0::/docker/" + id + "a", "0::/x/" + id + ".slice",
          std::string("0::/kubepods/podium/x\n"), std::string("0::/build/job_1/step_2\n"),
          std::string("0::/slurm/job_x/step_2\n")})
        EXPECT_EQ(read(text), "- - - -") << text;
}
