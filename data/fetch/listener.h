// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace gradring::data {

/// Hears what happens while files are fetched, in the thread that fetches.
class FetchListener {
 public:
  virtual ~FetchListener() = default;
  /// The file lies there already, whole and right.
  virtual void already_there(std::string_view file) = 0;
  /// An address is asked for a file, from byte `begin` on.
  virtual void asking(std::string_view file, std::string_view url, std::uint64_t begin) = 0;
  /// So much of it is here.
  virtual void arrived(std::uint64_t bytes, std::uint64_t of_bytes) = 0;
  /// An address failed; the next one follows, or the end.
  virtual void failed(std::string_view url, std::string_view why) = 0;
  /// The file lies there, whole and right.
  virtual void done(std::string_view file) = 0;
};

}  // namespace gradring::data
