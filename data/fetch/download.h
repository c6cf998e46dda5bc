// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "data/fetch/http.h"
#include "data/fetch/known_file.h"
#include "data/fetch/listener.h"

namespace gradring::data {

struct DownloadSpec {
  KnownFile file;
  std::filesystem::path folder;          ///< where the file will lie
  std::span<const std::string> mirrors;  ///< addresses of folders; each is asked for <mirror>/<name>, in order
  HttpTimeouts timeouts = {};
};

/// Gets a file from the first mirror that has it.
///
/// What arrives goes to <name>.part, which stays when a transfer breaks off: the next address, or the next call, goes on from
/// there. When it is whole its size and SHA-256 are compared; only then it gets its name. A wrong one is removed. One that was
/// put together from two transfers and is wrong is asked for once more from its beginning before its mirror is given up.
///
/// Errors    DataError if a mirror sent something else than the file and none sent the file; FetchError if none could be
///           reached or kept going. Both list each address and what came of it. DiskError at once.
void download(const DownloadSpec& spec, FetchListener& listener);

}  // namespace gradring::data
