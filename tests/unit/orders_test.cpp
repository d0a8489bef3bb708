// directory/orders: orders to a process, and its answers.
#include "store_support.h"

extern "C" {
#include "directory/orders.h"
}

namespace {

class OrdersTest : public LeasedTest {
  protected:
    std::string path(const char *suffix) const {
        return procs() + "/" + owner_text(self) + suffix;
    }
};

} // namespace

TEST_F(OrdersTest, AnOrderIsReadAsItWasWrittenAndTellsWhetherItsGiverLives) {
    gps_order order = {}, read;
    bool held = false;
    EXPECT_EQ(gps_order_read(&store, &self, &read, &held), -ENOENT);
    const int fd = gps_order_open(&store, &self);
    ASSERT_GE(fd, 0);
    EXPECT_EQ(gps_order_read(&store, &self, &read, &held), -EBADMSG) << "it is empty yet";
    order.ask = GPS_ORDER_LET_GO;
    order.serial = 7;
    order.timeout = 5;
    ASSERT_EQ(gps_order_write(fd, &order), 0);
    EXPECT_EQ(gps_order_open(&store, &self), -EAGAIN) << "one at a time gives orders";
    ASSERT_EQ(gps_order_read(&store, &self, &read, &held), 0);
    EXPECT_TRUE(held);
    EXPECT_EQ(read.ask, static_cast<uint32_t>(GPS_ORDER_LET_GO));
    EXPECT_EQ(read.serial, 7u);
    EXPECT_EQ(read.timeout, 5u);
    gps_file_close_locked(fd);
    ASSERT_EQ(gps_order_read(&store, &self, &read, &held), 0);
    EXPECT_FALSE(held);
}

TEST_F(OrdersTest, ADamagedAnswerIsNone) {
    gps_answer_file answer = {}, read;
    EXPECT_EQ(gps_answer_read(&store, &self, &read), -ENOENT);
    answer.state = GPS_ANSWER_GONE;
    answer.evicted = 1234;
    strcpy(answer.reason, "why");
    ASSERT_EQ(gps_answer_write(&store, &self, &answer), 0);
    ASSERT_EQ(gps_answer_read(&store, &self, &read), 0);
    EXPECT_EQ(read.evicted, 1234u);
    EXPECT_STREQ(read.reason, "why");
    const int fd = open(path(".answer").c_str(), O_RDWR);
    ASSERT_EQ(pwrite(fd, "x", 1, 40), 1);
    close(fd);
    EXPECT_EQ(gps_answer_read(&store, &self, &read), -EBADMSG);
}

TEST_F(OrdersTest, FilesAreKnownByTheirNamesAndGoWithTheProcess) {
    gps_answer_file answer = {};
    gps_owner owner;
    ASSERT_EQ(gps_answer_write(&store, &self, &answer), 0);
    gps_file_close_locked(gps_order_open(&store, &self));
    for (const char *suffix : {".answer", ".order"}) {
        EXPECT_EQ(access(path(suffix).c_str(), F_OK), 0);
        const std::string name = path(suffix).substr(path("").rfind('/') + 1);
        EXPECT_TRUE(gps_orders_parse(name.c_str(), &owner));
        EXPECT_EQ(owner.nonce, self.nonce);
    }
    EXPECT_FALSE(gps_orders_parse("x.order", &owner));
    EXPECT_FALSE(gps_orders_parse(".order", &owner));
    gps_orders_remove(&store, &self);
    for (const char *suffix : {".answer", ".order"})
        EXPECT_NE(access(path(suffix).c_str(), F_OK), 0);
}
