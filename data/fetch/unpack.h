// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <span>

#include "data/fetch/catalogue.h"
#include "data/fetch/listener.h"

namespace gradring::data {

/// Takes `files` out of a .tar.gz, whatever folder they lie in there, into `folder`: each is hashed before it gets its name.
///
/// Errors    DataError if the archive is damaged, or lacks one of the files or has another version of it; DiskError.
void unpack(const std::filesystem::path& archive, std::span<const CatalogueFile> files,
            const std::filesystem::path& folder, FetchListener& listener);

}  // namespace gradring::data
