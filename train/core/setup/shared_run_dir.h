// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "kernels/base/directory.h"

namespace gradring::train {

// Every rank writes its log into rank 0's run directory, and ranks that a launcher starts again resume in it. Its path
// could be that of another run by then.

/// What rank 0 tells the others of its run directory, as text.
std::string identity_of(const Directory& run_dir);

/// Opens the directory of identity_of(). On a machine that does not share rank 0's disk, creates one of that path.
///
/// Errors    EnvironmentError if it cannot be opened or created, or if this process sees the files that rank 0 sees and
///           the path names another directory.
Directory open_identified(const std::string& identity);

/// Whether `path` names the directory of identity_of(). True if `identity` is not such a text, or of another machine.
bool names_identified(const std::filesystem::path& path, const std::string& identity);

}  // namespace gradring::train
