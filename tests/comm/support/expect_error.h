// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <exception>
#include <string>

namespace gradring::tests {

/// Expects that a rank threw an E.
template <class E>
void expect_error(const std::exception_ptr& error) {
  ASSERT_TRUE(error) << "nothing was thrown";
  EXPECT_THROW(std::rethrow_exception(error), E);
}

/// Expects that a rank threw an E that names `peer` and contains `text`.
template <class E>
void expect_error(const std::exception_ptr& error, int peer, const std::string& text) {
  ASSERT_TRUE(error) << "nothing was thrown";
  try {
    std::rethrow_exception(error);
  } catch (const E& thrown) {
    EXPECT_EQ(thrown.peer(), peer) << thrown.what();
    EXPECT_THAT(thrown.what(), ::testing::HasSubstr(text));
  } catch (const std::exception& other) {
    ADD_FAILURE() << "another error: " << other.what();
  }
}

}  // namespace gradring::tests
