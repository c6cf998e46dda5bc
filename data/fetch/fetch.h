// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "data/fetch/catalogue.h"
#include "data/fetch/http.h"
#include "data/fetch/listener.h"

namespace gradring::data {

struct FetchSpec {
  std::filesystem::path data_dir;         ///< files go to data_dir/<name of the set>
  std::vector<std::string> mirrors = {};  ///< asked instead of the public ones, where there are any
  HttpTimeouts timeouts = {};
};

/// Gets what is missing or wrong of a data set; an archive is unpacked, and removed where it was not there before.
///
/// Errors    as require_http and download; DataError if the archive lacks one of the files.
/// Cost      what is there already is read once, to be hashed.
void fetch(const CatalogueEntry& entry, const FetchSpec& spec, FetchListener& listener);

}  // namespace gradring::data
