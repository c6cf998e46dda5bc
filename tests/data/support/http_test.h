// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>

#include "data/fetch/http.h"
#include "tests/data/support/http_server.h"

namespace gradring::tests {

/// A test with a server, skipped where there is no curl.
class HttpTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (data::curl_version().empty()) GTEST_SKIP() << "no curl";
    ::setenv("no_proxy", "127.0.0.1", 1);  // whatever this machine's way out is
  }

  HttpServer server_;
};

}  // namespace gradring::tests
