// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/sockets/resolve.h"
#include "comm/sockets/socket_address.h"
#include "kernels/base/error.h"
#include "kernels/base/host_name.h"
#include "tests/train/launch/running_launcher.h"
#include "train/launch/workers/host.h"

namespace gradring::train {
namespace {

TEST(VisibleGpus, CountsDeviceFilesListedAsVisible) {
  const TestFolder dev;
  const auto count = [&](std::optional<std::string> visible) {
    return visible_gpus([&](const std::string&) { return visible; }, dev.path());
  };
  EXPECT_EQ(count({}), 0);
  EXPECT_EQ(count("0,1"), 0);
  for (const char* name : {"nvidia0", "nvidia1", "nvidia12", "nvidiactl", "nvidia-uvm", "nvidia", "null"})
    dev.touch(name);
  EXPECT_EQ(count({}), 3);
  EXPECT_EQ(count("1"), 1);
  EXPECT_EQ(count("1,0"), 2);
  EXPECT_EQ(count(""), 0);
  EXPECT_EQ(count("-1"), 0);
  EXPECT_EQ(count("0,-1,1"), 1);
  EXPECT_EQ(count("0,1,2,3,4"), 3);
}

TEST(HostAddresses, RecognizesWildcardAddresses) {
  for (const char* host : {"0.0.0.0", "::", "0:0:0:0:0:0:0:0", "0"}) EXPECT_TRUE(is_wildcard_address(host)) << host;
  for (const char* host : {"127.0.0.1", "::1", "localhost", "no..host", ""})
    EXPECT_FALSE(is_wildcard_address(host)) << host;
}

TEST(HostAddresses, DistinguishesThisHostFromOthers) {
  for (const std::string& host : {std::string("127.0.0.1"), std::string("127.0.1.1"), std::string("localhost"),
                                  std::string("0.0.0.0"), host_name()})
    EXPECT_TRUE(is_this_host(host)) << host;
  for (const char* host : {"192.0.2.1", "198.51.100.7"})  // reserved for documentation (RFC 5737)
    EXPECT_FALSE(is_this_host(host)) << host;
  EXPECT_THROW(is_this_host("no..host"), comm::tcp::UnresolvedName);
}

TEST(HostAddresses, FindsTheOwnAddressOfAName) {
  EXPECT_EQ(own_address("127.0.0.2"), "127.0.0.2");
  EXPECT_THAT(own_address("localhost"), ::testing::AnyOf("127.0.0.1", "::1"));
  EXPECT_THAT([] { own_address("192.0.2.1"); },
              ::testing::ThrowsMessage<InvalidArgument>(::testing::EndsWith("with --local-addr")));
  EXPECT_THROW(own_address("no..host"), comm::tcp::UnresolvedName);
}

TEST(FreePort, IsFreeAtEveryAddress) {
  const auto port = static_cast<std::uint16_t>(free_tcp_port());
  for (const char* address : {"0.0.0.0", "127.0.0.1"})
    EXPECT_NO_THROW(comm::tcp::listen_at({address, port}, 1)) << address << ":" << port;
}

}  // namespace
}  // namespace gradring::train
