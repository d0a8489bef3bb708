/* name_test.cpp - who has a name. */
#include "store_support.h"

namespace {

namespace fs = std::filesystem;

class NameTest : public LeasedTest {
  protected:
    int claim(const std::string &name = "frames") {
        holder = {};
        return gps_name_claim(&store, name.c_str(), &self, &holder);
    }
    int resolve(const std::string &name = "frames") {
        target = {};
        return gps_name_resolve(&store, name.c_str(), &target);
    }
    /* Publishes a region of ours that bears the name. */
    gps_region_record publish(unsigned seed, const std::string &name = "frames") {
        gps_region_record record = make_record(self, seed, name);
        EXPECT_EQ(0, gps_region_publish(&store, &record));
        return record;
    }
    /* A process that has claimed the name. */
    Child claimer(gps_owner *owner, const char *name = "frames") {
        return leased(owner, [=](Child &, gps_lease &mine) {
            return -gps_name_claim(&store, name, &mine.self, nullptr);
        });
    }
    /* A process that has published a region under the name, in this state. */
    Child exporter(gps_owner *owner, gps_state state = GPS_STATE_READY) {
        return leased(owner, [=](Child &, gps_lease &mine) {
            gps_region_record record = make_record(mine.self, 7, "frames");
            if (gps_name_claim(&store, "frames", &mine.self, nullptr) != 0 ||
                gps_region_publish(&store, &record) != 0 ||
                gps_name_point(&store, "frames", &mine.self, &record.id) != 0)
                return 80;
            return -gps_region_set_status(&store, &record, state, 0);
        });
    }
    void expect_ours() {
        ASSERT_EQ(0, resolve());
        EXPECT_EQ(GPS_NAME_CLAIM, target.kind);
        EXPECT_TRUE(gps_owner_equal(&self, &target.claimer));
        EXPECT_EQ(1u, entries(names()).size()) << "something stayed beside it";
    }

    gps_owner holder = {};
    gps_name_target target = {};
};

TEST_F(NameTest, InvalidNamesAreRefusedEverywhere) {
    gps_region_record record = publish(1);
    for (const char *bad : {"", ".", "..", "../x", "a/b", ".tmp.x"}) {
        EXPECT_EQ(-EINVAL, gps_name_claim(&store, bad, &self, nullptr)) << bad;
        EXPECT_EQ(-EINVAL, gps_name_resolve(&store, bad, &target)) << bad;
        EXPECT_EQ(-EINVAL, gps_name_point(&store, bad, &self, &record.id)) << bad;
        EXPECT_EQ(-EINVAL, gps_name_release(&store, bad, &self, nullptr)) << bad;
    }
    EXPECT_TRUE(entries(names()).empty());
}

TEST_F(NameTest, ALiveRegionsNameIsRespectedInEveryStateButFreed) {
    for (gps_state state :
         {GPS_STATE_WRITING, GPS_STATE_READY, GPS_STATE_FINAL, GPS_STATE_CLOSING}) {
        gps_owner other;
        Child child = exporter(&other, state);

        EXPECT_EQ(-EEXIST, claim()) << state;
        EXPECT_TRUE(gps_owner_equal(&other, &holder)) << state;
        fs::remove(names() + "/frames");
        child.kill_and_reap();
    }
}

TEST_F(NameTest, ANameOfNoRegionIsTakenOver) {
    fs::create_symlink("../regions/" + id_text(make_record(self, 5).id), names() + "/frames");
    ASSERT_EQ(0, claim());
    expect_ours();
}

TEST_F(NameTest, ANameThatItsRegionDoesNotBearIsTakenOver) {
    gps_owner other;
    Child child = exporter(&other);
    fs::rename(names() + "/frames", names() + "/stolen");
    ASSERT_EQ(0, gps_name_claim(&store, "stolen", &self, nullptr));
    EXPECT_EQ("../procs/" + owner_text(self), link_of("stolen"));
}

TEST_F(NameTest, ANameOfADamagedRecordIsTakenOver) {
    gps_region_record record = make_record(self, 5, "frames");
    std::ofstream(region_file(record.id)) << "junk";
    chmod(region_file(record.id).c_str(), 0600);
    fs::create_symlink("../regions/" + id_text(record.id), names() + "/frames");
    EXPECT_EQ(0, claim());
}

TEST_F(NameTest, ANameOfALiveRecordWithATornStatusIsRespected) {
    gps_owner other;
    Child child = exporter(&other);
    gps_region_record record = make_record(other, 7);
    int fd = open(region_file(record.id).c_str(), O_WRONLY | O_CLOEXEC);
    ASSERT_EQ(4, pwrite(fd, "torn", 4, 460));
    close(fd);
    EXPECT_EQ(-EEXIST, claim());
    EXPECT_TRUE(gps_owner_equal(&other, &holder));
}

TEST_F(NameTest, ANameOfARecordOfAnotherVersionIsRespected) {
    gps_region_record record = make_record(self, 5, "frames");
    int fd = open(region_file(record.id).c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    record.version = 2;
    ASSERT_EQ(static_cast<ssize_t>(sizeof record), write(fd, &record, sizeof record));
    close(fd);
    fs::create_symlink("../regions/" + id_text(record.id), names() + "/frames");
    EXPECT_EQ(-EEXIST, claim());
}

TEST_F(NameTest, LinksThatAreNotOursAreBadAndTakenOver) {
    const std::string id = id_text(make_record(self, 1).id);
    for (const std::string &text :
         {std::string("/etc/passwd"), std::string("../regions/../../../../etc/passwd"),
          std::string("../procs/"), std::string("../procs/x"), "../procs/" + owner_text(self) + "/",
          "../regions/" + id + "0", "../regions/" + id.substr(1), "./../regions/" + id,
          "regions/" + id, std::string("frames"), std::string("."), std::string(4000, 'x'),
          "../procs/" + std::string(300, '1')}) {
        fs::create_symlink(text, names() + "/frames");
        EXPECT_EQ(-EBADMSG, resolve()) << text;
        EXPECT_EQ(0, claim()) << text;
        expect_ours();
        fs::remove(names() + "/frames");
    }
}

TEST_F(NameTest, FilesAndFifosInPlaceOfALinkAreBadAndTakenOver) {
    std::ofstream(names() + "/frames") << "../regions/";
    EXPECT_EQ(-EBADMSG, resolve());
    EXPECT_EQ(0, claim());
    expect_ours();
    fs::remove(names() + "/frames");
    mkfifo((names() + "/frames").c_str(), 0600);
    EXPECT_EQ(-EBADMSG, resolve());
    EXPECT_EQ(0, claim());
    expect_ours();
}

TEST_F(NameTest, ADirectoryInPlaceOfALinkIsAnErrorAndStays) {
    fs::create_directory(names() + "/frames");
    EXPECT_EQ(-EBADMSG, resolve());
    EXPECT_EQ(-EISDIR, claim());
    EXPECT_TRUE(fs::is_directory(names() + "/frames"));
}

TEST_F(NameTest, ALinkIsNeverFollowed) {
    /* The claim's target is replaced by a link to a victim: neither resolving nor taking over reads
     * or removes the victim. */
    std::ofstream(base + "/victim") << "precious";
    fs::create_symlink(base + "/victim", names() + "/frames");
    EXPECT_EQ(-EBADMSG, resolve());
    EXPECT_EQ(0, claim());
    EXPECT_TRUE(fs::exists(base + "/victim"));
    EXPECT_EQ(8u, fs::file_size(base + "/victim"));
}

TEST_F(NameTest, ANameMovesFromOneRegionOfOursToTheNext) {
    ASSERT_EQ(0, claim());
    gps_region_record first = publish(1), second = publish(2);
    ASSERT_EQ(0, gps_name_point(&store, "frames", &self, &first.id));
    ASSERT_EQ(0, gps_name_point(&store, "frames", &self, &second.id));
    ASSERT_EQ(0, resolve());
    EXPECT_TRUE(gps_id_equal(&second.id, &target.region));
}

TEST_F(NameTest, OnlyItsHolderPointsAName) {
    gps_owner other;
    gps_region_record record = publish(1);
    EXPECT_EQ(-ENOENT, gps_name_point(&store, "frames", &self, &record.id)) << "without a claim";
    Child child = claimer(&other);
    EXPECT_EQ(-EEXIST, gps_name_point(&store, "frames", &self, &record.id));
    EXPECT_EQ("../procs/" + owner_text(other), link_of("frames"));
    child.kill_and_reap();
    EXPECT_EQ(-EEXIST, gps_name_point(&store, "frames", &self, &record.id))
        << "not even a dead one's";
}

TEST_F(NameTest, OnlyAPublishedRegionThatBearsTheNameIsPointedTo) {
    gps_region_record record = make_record(self, 1, "frames");
    ASSERT_EQ(0, claim());
    EXPECT_EQ(-ENOENT, gps_name_point(&store, "frames", &self, &record.id));
    record = publish(2, "other");
    EXPECT_EQ(-EINVAL, gps_name_point(&store, "frames", &self, &record.id));
    expect_ours();
}

TEST_F(NameTest, ANameOfOurRegionIsReleasedBeforeAndAfterTheRegionIsFreedOrGone) {
    for (int variant = 0; variant < 3; variant++) {
        ASSERT_EQ(0, claim());
        gps_region_record record = publish(1);
        ASSERT_EQ(0, gps_name_point(&store, "frames", &self, &record.id));
        if (variant == 1) {
            ASSERT_EQ(0, gps_region_set_status(&store, &record, GPS_STATE_FREED, 0));
        }
        if (variant == 2) {
            ASSERT_EQ(0, gps_region_remove(&store, &record.id));
        }
        EXPECT_EQ(0, gps_name_release(&store, "frames", &self, &record.id));
        EXPECT_TRUE(entries(names()).empty()) << variant;
    }
}

TEST_F(NameTest, WhatIsNotOursIsNotReleased) {
    gps_owner other;
    gps_region_record record = publish(1), second = publish(2);
    EXPECT_EQ(0, gps_name_release(&store, "frames", &self, nullptr)) << "nothing there";
    {
        Child child = claimer(&other);
        EXPECT_EQ(0, gps_name_release(&store, "frames", &self, &record.id));
        EXPECT_EQ("../procs/" + owner_text(other), link_of("frames"));
    }
    ASSERT_EQ(0, claim());
    ASSERT_EQ(0, gps_name_point(&store, "frames", &self, &record.id));
    EXPECT_EQ(0, gps_name_release(&store, "frames", &self, nullptr)) << "it is no claim any more";
    EXPECT_EQ(0, gps_name_release(&store, "frames", &self, &second.id));
    EXPECT_EQ("../regions/" + id_text(record.id), link_of("frames"));
    fs::remove(names() + "/frames");
    std::ofstream(names() + "/frames") << "x";
    EXPECT_EQ(0, gps_name_release(&store, "frames", &self, &record.id));
    EXPECT_TRUE(fs::exists(names() + "/frames"));
}

TEST_F(NameTest, ReleasingAFreedRegionsNameDoesNotTakeItFromTheNextHolder) {
    ASSERT_EQ(0, claim());
    gps_region_record record = publish(1);
    ASSERT_EQ(0, gps_name_point(&store, "frames", &self, &record.id));
    ASSERT_EQ(0, gps_region_set_status(&store, &record, GPS_STATE_FREED, 0));
    gps_owner other;
    Child child = claimer(&other);
    EXPECT_EQ(0, gps_name_release(&store, "frames", &self, &record.id));
    EXPECT_EQ("../procs/" + owner_text(other), link_of("frames"));
}

TEST_F(NameTest, AHeldLockRefusesInsteadOfWaiting) {
    /* What a claimer sees of one that was stopped between its second look and its removal. */
    fs::create_symlink("../procs/" + owner_text(dead_owner()), names() + "/frames");
    int fd = open((directory + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ASSERT_EQ(0, gps_file_lock(fd, 0, 0));
    alarm(5);
    EXPECT_EQ(-EEXIST, claim());
    alarm(0);
    EXPECT_EQ(0u, holder.pid);
    close(fd);
    EXPECT_EQ(0, claim());
}

} // namespace
