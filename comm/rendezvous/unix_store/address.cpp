// SPDX-License-Identifier: Apache-2.0
#include "comm/rendezvous/unix_store/address.h"

#include <fmt/format.h>

#include <cerrno>
#include <system_error>

#include "kernels/runtime/error.h"

namespace gradring::comm {

sockaddr_un unix_address(const std::filesystem::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  check(path.native().size() < sizeof address.sun_path,
        fmt::format("the path of a store's socket may have {} bytes, this one has more: {}; choose a shorter TMPDIR",
                    sizeof address.sun_path - 1, path.string()));
  path.native().copy(address.sun_path, path.native().size());
  return address;
}

std::string last_error() { return std::generic_category().message(errno); }

}  // namespace gradring::comm
