// SPDX-License-Identifier: Apache-2.0
#include "comm/rendezvous/unix_store/private_directory.h"

#include <cstdlib>
#include <string>
#include <system_error>

#include "comm/rendezvous/unix_store/address.h"
#include "kernels/runtime/error.h"

namespace gradring::comm {

PrivateDirectory::PrivateDirectory(const std::filesystem::path& parent) {
  std::string name = (parent / "gradring-XXXXXX").string();
  const bool made = ::mkdtemp(name.data()) != nullptr;  // with mode 0700
  check<DeviceError>(made, "cannot make a directory for the store in " + parent.string() + ": " + last_error());
  path_ = name;
}

PrivateDirectory::~PrivateDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace gradring::comm
