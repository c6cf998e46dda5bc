// SPDX-License-Identifier: Apache-2.0
// A rank that may open few files, where nobody authenticates many connections: it joins all the same.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <stdexcept>

#include "kernels/base/descriptor_limit.h"
#include "tests/comm/support/ranks.h"
#include "tests/comm/transports/tcp/rendezvous_helpers.h"

namespace gradring::comm::tcp {
namespace {

/// This process may open `more` further files, and cannot raise that limit.
void allow_files(std::size_t more) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) throw std::runtime_error("getrlimit failed");
  limit.rlim_cur = limit.rlim_max = limit.rlim_cur - free_descriptors() + more;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) throw std::runtime_error("setrlimit failed");
}

/// With 30, the rank limits the pending connections; with 5, it also meets the limit.
TEST(TcpMesh, JoinsWithFewDescriptorsDuringAConnectionFlood) {
  for (const std::size_t more : {30u, 5u}) {
    SCOPED_TRACE(more);
    tests::Processes ranks(2, [more](int rank, Store& store) {
      if (rank == 0)
        allow_files(more);
      else
        store.wait("flooded", Deadline::after(tests::kLong));
      const auto peers = connect_mesh(store, tests::spec_of(rank, 2), Deadline::after(tests::kLong));
      store.wait("done", Deadline::after(tests::kLong));
    });
    std::vector<UniqueFd> clients;
    for (int i = 0; i < 60; ++i) clients.push_back(tests::connect_to(ranks.store(), 0));
    ranks.store().set("flooded", "");
    for (int i = 0; i < 4; ++i) clients.push_back(tests::connect_to(ranks.store(), 0));
    ranks.store().set("done", "");
    for (const int rank : {0, 1}) {
      const auto outcome = ranks.outcome(rank);
      EXPECT_EQ(outcome.kind, "ok") << "rank " << rank << ": " << outcome.message;
    }
  }
}

}  // namespace
}  // namespace gradring::comm::tcp
