// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "kernels/runtime/error.h"

namespace gradring::data {

/// Something could not be fetched, and neither the data nor the person asking is to blame: the network, a server, the disk.
class FetchError : public Error {
 public:
  using Error::Error;
};

/// A server answered, and not with the file.
class HttpStatusError final : public FetchError {
 public:
  explicit HttpStatusError(long status)
      : FetchError("the server answered " + std::to_string(status)), status_(status) {}

  long status() const { return status_; }

 private:
  long status_;
};

/// This machine's own fault, with which no other server would help: a full disk, a folder that may not be written.
class DiskError final : public FetchError {
 public:
  DiskError(const std::filesystem::path& path, const std::string& what)
      : FetchError(path.string() + ": " + what + "; free some space or choose another --data-dir") {}
};

}  // namespace gradring::data
