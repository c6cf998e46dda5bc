// SPDX-License-Identifier: Apache-2.0
// The libcurl that a portable program loads at run time.
#include <gmock/gmock.h>

#include <array>

#include "data/fetch/curl_api.h"
#include "data/fetch/http.h"
#include "tests/data/support/message_of.h"

namespace gradring::data {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string error(std::span<const char* const> names) {
  return tests::message_of<FetchError>([&] { load_curl(names); });
}

TEST(LoadCurl, FindsEveryFunction) {
  const CurlApi api = load_curl(std::array{"libcurl.so.4", "libcurl-gnutls.so.4"});
  EXPECT_THAT(api.version(), StartsWith("libcurl/"));
  CURL* const request = api.easy_init();
  ASSERT_NE(request, nullptr);
  long status = -1;
  EXPECT_EQ(api.easy_setopt(request, CURLOPT_URL, "nowhere://host/"), CURLE_OK);
  EXPECT_EQ(api.easy_perform(request), CURLE_UNSUPPORTED_PROTOCOL);
  EXPECT_EQ(api.easy_getinfo(request, CURLINFO_RESPONSE_CODE, &status), CURLE_OK);
  EXPECT_EQ(status, 0);
  EXPECT_STRNE(api.easy_strerror(CURLE_UNSUPPORTED_PROTOCOL), api.easy_strerror(CURLE_OK));
  EXPECT_TRUE(api.strnequal("Range", "rANGE", 5));
  api.easy_cleanup(request);
}

TEST(LoadCurl, TakesTheFirstLibraryThatLoads) {
  EXPECT_THAT(load_curl(std::array{"libgradring-absent.so.4", "libcurl.so.4"}).version(), StartsWith("libcurl/"));
}

TEST(LoadCurl, SaysWhatToInstall) {
  EXPECT_THAT(error(std::array{"libgradring-absent.so.4"}),
              AllOf(HasSubstr("libgradring-absent.so.4: cannot open shared object file"),
                    HasSubstr("install libcurl 7.85 or later (Debian: libcurl4)")));
}

TEST(LoadCurl, RefusesAnotherLibrary) {
  EXPECT_THAT(error(std::array{"libc.so.6"}),
              AllOf(HasSubstr("has no function curl_easy_init"), HasSubstr("libcurl4")));
}

}  // namespace
}  // namespace gradring::data
