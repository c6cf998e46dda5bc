// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/run_program.h"
#include "tests/support/temp_folder.h"

namespace gradring::tests {

using Words = std::vector<std::string>;

inline Words joined(Words some, const Words& more) {
  some.insert(some.end(), more.begin(), more.end());
  return some;
}

/// A command line of gradring, by a launcher with two workers.
inline Words launched(const Words& words) { return joined({"launch", "--nproc-per-node", "2"}, words); }

/// A folder with a small data set, in which the gradring that was just built runs.
///
///   data/    64 training and 32 test images of 28 x 28 with labels 0 .. 9, under MNIST's names
class Workplace {
 public:
  Workplace();

  std::filesystem::path path(const std::filesystem::path& name) const { return folder_.path() / name; }
  const TempFolder& folder() const { return folder_; }

  using Variables = std::vector<std::pair<std::string, std::string>>;
  /// gradring words..., in the folder.
  ProgramSpec gradring(const Words& words, const Variables& variables = {}) const;
  ProgramEnd run(const Words& words, const Variables& variables = {}) const {
    return run_program(gradring(words, variables));
  }

  /// What lies in the folder beside data/, sorted; what a program left behind.
  std::vector<std::string> left() const;

 private:
  TempFolder folder_;
};

/// "train", options for two small steps on the workplace's data into the run directory `run`, and `more`.
Words short_training(const Words& more = {});

/// How many reasons a program gave on stderr: lines, but for the launcher's list of who failed after the first.
std::ptrdiff_t reasons_in(const std::string& err);

/// MNIST's four file names.
extern const char* const kTrainImages;
extern const char* const kTrainLabels;
extern const char* const kTestImages;
extern const char* const kTestLabels;

}  // namespace gradring::tests
