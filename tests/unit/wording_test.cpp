// wording_test.cpp - texts in the names of another vendor.
extern "C" {
#include "log/wording.h"
}

namespace {

std::string said(const char *text) {
    char room[GPS_WORDING_BYTES];
    return gps_wording(text, room);
}

TEST(Wording, NamesAreTheVendors) {
    EXPECT_EQ(said("call cudaFree, then CUDA"), "call cudaFree, then CUDA");
    gps_wording_start("cuda", false);
    EXPECT_EQ(said("call cudaFree, then CUDA"), "call cudaFree, then CUDA");
    gps_wording_start("hip", true);
    EXPECT_TRUE(gps_wording_is_by_range());
    EXPECT_EQ(said("call cudaFree, then CUDA"), "call hipFree, then HIP");
    EXPECT_EQ(said("cudaIpcCloseMemHandle for what cudaIpcOpenMemHandle returned"),
              "hipIpcCloseMemHandle for what hipIpcOpenMemHandle returned");
    EXPECT_EQ(said("barracuda, cudart, cuda"), "barracuda, cudart, cuda");
    EXPECT_EQ(gps_wording(nullptr, nullptr), nullptr);
    EXPECT_EQ(said(std::string(5000, 'x').c_str()).size(), GPS_WORDING_BYTES - 1u);
    gps_wording_start("cuda", false);
}

} // namespace
