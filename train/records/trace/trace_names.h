// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <utility>

namespace gradring::train {

/// Keeps names that the events of a trace point to.
///
/// Threads   one.
class TraceNames {
 public:
  /// The same text, for as long as this lives.
  const char* keep(std::string name) { return names_.insert(std::move(name)).first->c_str(); }

 private:
  std::set<std::string> names_;
};

}  // namespace gradring::train
