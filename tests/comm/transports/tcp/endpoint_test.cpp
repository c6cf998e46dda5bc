// SPDX-License-Identifier: Apache-2.0
#include "comm/transports/tcp/mesh.h"

#include <gtest/gtest.h>

#include "comm/sockets/handshake.h"
#include "comm/sockets/socket_address.h"
#include "kernels/base/error.h"

namespace gradring::comm::tcp {
namespace {

TEST(TcpSocketAddress, ParsesAndFormatsNumericAddresses) {
  EXPECT_EQ(SocketAddress("192.0.2.7", 80).to_string(), "192.0.2.7:80");
  EXPECT_EQ(SocketAddress("2001:DB8:0::7", 65535).to_string(), "[2001:db8::7]:65535");
  EXPECT_TRUE(SocketAddress("0.0.0.0", 1).is_wildcard());
  EXPECT_TRUE(SocketAddress("::", 1).is_wildcard());
  EXPECT_FALSE(SocketAddress("::1", 1).is_wildcard());
  EXPECT_THROW(SocketAddress("example.org", 1), InvalidArgument);
}

TEST(TcpSocketAddress, RecognizesLoopbackAddresses) {
  for (const char* address : {"127.0.0.1", "127.0.1.1", "127.255.0.1", "::1"})
    EXPECT_TRUE(SocketAddress(address, 1).is_loopback()) << address;
  for (const char* address : {"0.0.0.0", "126.0.0.1", "128.0.0.1", "10.0.0.127", "::", "fe80::1"})
    EXPECT_FALSE(SocketAddress(address, 1).is_loopback()) << address;
}

TEST(TcpSocketAddress, OnePortIsOpenedForBothFamilies) {
  const UniqueFd ipv4 = listen_at(SocketAddress("0.0.0.0", 0), 1);
  const std::uint16_t port = SocketAddress::of(ipv4).port();
  try {
    const UniqueFd ipv6 = listen_at(SocketAddress("::", port), 1);
  } catch (const AddressInUse& error) {
    ADD_FAILURE() << error.what();
  } catch (const DeviceError& error) {
    GTEST_SKIP() << error.what();  // no IPv6 here
  }
  EXPECT_THROW(listen_at(SocketAddress("127.0.0.1", port), 1), AddressInUse);
}

TcpGroupOptions spec_of(int rank) {
  TcpGroupOptions spec;
  spec.rank = rank;
  spec.world_size = 2;
  return spec;
}

TEST(TcpEndpoint, RoundTripsThroughText) {
  const Endpoint endpoint = local_endpoint(spec_of(0), SocketAddress("::1", 1234));
  const Endpoint again = Endpoint::parse(endpoint.to_text());
  EXPECT_EQ(again.to_text(), endpoint.to_text());
  EXPECT_EQ(again.port, 1234);
  EXPECT_NO_THROW(RunToken::parse(again.token));
  EXPECT_EQ(local_endpoint(spec_of(1), SocketAddress("::1", 1234)).token, "-");
  for (const char* text : {"", "1 2", "1 2 ::1 70000 5 - node", "a b c d e f g"})
    EXPECT_THROW(Endpoint::parse(text), DeviceError) << text;
}

TEST(TcpEndpoint, OmitsAGivenToken) {
  TcpGroupOptions spec = spec_of(0);
  spec.token = std::string(64, 'a');
  EXPECT_EQ(local_endpoint(spec, SocketAddress("::1", 1234)).token, "-");
}

}  // namespace
}  // namespace gradring::comm::tcp
