// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <string>

#include "comm/sockets/handshake.h"

namespace gradring::tests {

/// The first message of a rank that connects to rank `peer`, as a packet capture contains it.
inline std::string recorded_hello(const comm::tcp::Identity& dialler, int peer) {
  int ends[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
  const UniqueFd recorder(ends[1]);
  comm::tcp::Handshake::dial(UniqueFd(ends[0]), dialler, peer, Deadline::after(std::chrono::minutes(1))).advance();
  std::string hello(sizeof(comm::tcp::Hello), '\0');
  EXPECT_EQ(::recv(recorder.get(), hello.data(), hello.size(), 0), std::ssize(hello));
  return hello;
}

}  // namespace gradring::tests
