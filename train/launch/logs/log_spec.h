// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

namespace gradring::train {

/// The streams of a worker, with torchrun's bits.
enum class Stream { out = 1, err = 2 };

/// The value of -r or -t: which streams of which workers.
class StreamMap {
 public:
  /// No stream of any worker.
  StreamMap() = default;

  /// "0" none, "1" stdout, "2" stderr, "3" both, of all workers; "0:3,12:1" of these local ranks only.
  ///
  /// Errors    InvalidArgument if it is neither, or names a rank twice.
  static StreamMap from_text(const std::string& text);

  bool has(int local_rank, Stream stream) const;
  bool empty() const;
  /// The highest local rank named; -1 without any.
  int highest_rank() const { return by_rank_.empty() ? -1 : by_rank_.rbegin()->first; }

 private:
  int of_all_ = 0;
  std::map<int, int> by_rank_;
};

/// Where the output of workers goes. Streams neither redirected nor teed are inherited from the launcher.
struct LogSpec {
  std::string folder{};      ///< --log-dir; empty: no folder
  StreamMap redirects{};     ///< to files
  StreamMap tee{};           ///< to files, and to the terminal with a prefix
  std::vector<int> shown{};  ///< local ranks whose output reaches the terminal; empty: all
  std::string prefix{};      ///< template of LinePrefix; empty: kDefaultLinePrefix
};

/// torchrun's prefix of each line of a teed stream: "[default0]:".
constexpr const char* kDefaultLinePrefix = "[${role_name}${local_rank}]:";

/// The worker that wrote a line.
struct LineOwner {
  std::string role_name = "default";
  int rank = 0;
  int local_rank = 0;
  int node_rank = 0;
};

/// The prefix of the lines of one worker: a template in which ${role_name}, ${rank}, ${local_rank}, ${node_rank} and
/// ${time} are replaced.
class LinePrefix {
 public:
  /// An empty template is the default.
  LinePrefix(std::string text, const LineOwner& owner);

  /// Fills in the current time, "2026-01-31 12:00:00.123", if the template has ${time}.
  std::string now() const;

 private:
  std::string text_;
};

}  // namespace gradring::train
