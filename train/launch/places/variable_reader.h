// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <climits>
#include <string>

#include "train/launch/worker_environment.h"

namespace gradring::train {

/// Reads a worker's variables with a word about what is wrong with them.
///
/// Errors    InvalidArgument: "RANK=4 is outside WORLD_SIZE=4: ranks go from 0 to 3".
class VariableReader {
 public:
  explicit VariableReader(const VariableLookup& lookup) : lookup_(lookup) {}

  bool has(const std::string& name) const { return lookup_(name).has_value(); }
  std::string text(const std::string& name, std::string otherwise) const;
  int number(const std::string& name, int lowest, int highest, int otherwise) const;
  /// A rank and the size of its world, which only make sense together. Returns whether they are set.
  bool place(const std::string& rank_name, const std::string& size_name, int& rank, int& size) const;

  /// What any launcher may have set: MASTER_ADDR, MASTER_PORT, TORCHELASTIC_RUN_ID and the paths of files.
  void read_common(WorkerEnvironment& it) const;

 private:
  const VariableLookup& lookup_;
};

}  // namespace gradring::train
