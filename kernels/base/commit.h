// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace gradring {

/// The commit that this was built from: "8a87f55", with "-dirty" if the sources had changes; "unknown" outside of git.
/// In a library of its own, gradring_commit, so that a new commit rebuilds nothing else.
extern const char* const kCommit;

}  // namespace gradring
