// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>

#include "comm/transports/nccl/nccl_api.h"
#include "tests/support/temp_folder.h"

namespace gradring::tests {

/// The rendezvous folder of the stand-in for NCCL, for the time of a test.
class StandInMessages {
 public:
  /// Of a new group of ranks.
  ncclUniqueId make_unique_id(const comm::nccl::Api& api) const {
    ::setenv("GRADRING_STAND_IN_NCCL", folder_.path().c_str(), 1);
    ncclUniqueId id{};
    EXPECT_EQ(api.get_unique_id(&id), ncclSuccess);
    ::unsetenv("GRADRING_STAND_IN_NCCL");
    return id;
  }

 private:
  TempFolder folder_;
};

}  // namespace gradring::tests
