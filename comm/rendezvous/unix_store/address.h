// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <filesystem>
#include <string>

namespace gradring::comm {

/// The address of a socket in the file system.
///
/// Errors    InvalidArgument if the path is too long for one.
sockaddr_un unix_address(const std::filesystem::path& path);

/// "Permission denied", ...: the system's reason for the last failed call.
std::string last_error();

}  // namespace gradring::comm
