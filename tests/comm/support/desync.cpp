// SPDX-License-Identifier: Apache-2.0
#include "tests/comm/support/desync.h"

#include <gmock/gmock.h>

#include "comm/error.h"

namespace gradring::tests {

void expect_all_desync(const std::vector<std::exception_ptr>& errors, const std::vector<std::string>& words) {
  std::string texts;
  for (const std::exception_ptr& error : errors) {
    ASSERT_TRUE(error);
    try {
      std::rethrow_exception(error);
    } catch (const comm::Desync& desync) {
      texts += desync.what();
    } catch (const std::exception& unexpected) {
      ADD_FAILURE() << unexpected.what();
    }
  }
  for (const std::string& word : words) EXPECT_THAT(texts, ::testing::HasSubstr(word));
}

}  // namespace gradring::tests
