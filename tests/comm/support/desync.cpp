// SPDX-License-Identifier: Apache-2.0
#include "tests/comm/support/desync.h"

#include <gmock/gmock.h>

#include "comm/transport/error.h"

namespace gradring::tests {

void expect_all_desync(const std::vector<std::exception_ptr>& errors, const std::vector<std::string>& texts) {
  std::string messages;
  for (const std::exception_ptr& error : errors) {
    ASSERT_TRUE(error);
    try {
      std::rethrow_exception(error);
    } catch (const comm::Desync& desync) {
      messages += desync.what();
    } catch (const std::exception& unexpected) {
      ADD_FAILURE() << unexpected.what();
    }
  }
  for (const std::string& text : texts) EXPECT_THAT(messages, ::testing::HasSubstr(text));
}

}  // namespace gradring::tests
