// SPDX-License-Identifier: Apache-2.0
#include "train/launch/nodes/token.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "kernels/base/error.h"
#include "train/launch/workers/host.h"

namespace gradring::train {
namespace {

using comm::tcp::RunToken;

RunName name_of(const LaunchOptions& options) {
  return {.kind = "token", .run_id = options.run_id, .port = options.master_port};
}

UniqueFd open_file(const std::filesystem::path& path) {
  return UniqueFd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

/// Writes the token, and locks its file.
UniqueFd locked_file(const std::filesystem::path& path, const std::string& token) {
  write_private_file(path, token + "\n");
  UniqueFd file = open_file(path);
  if (!file || ::flock(file.get(), LOCK_EX | LOCK_NB) != 0)
    throw DeviceError(fmt::format("cannot lock {}: {}", path.string(), std::strerror(errno)));
  return file;
}

bool is_locked(const std::filesystem::path& path) {
  const UniqueFd file = open_file(path);
  return file && ::flock(file.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

bool is_elsewhere(const std::string& host) try {
  return !is_this_host(host);
} catch (const DeviceError&) {  // a name that cannot be resolved yet
  return false;
}

}  // namespace

RunToken agents_secret(const LaunchOptions& options) {
  check(!options.token.empty(), "agents need a token, because the run id is not secret");
  return RunToken::from_secret(options.token).derive("gradring agents " + options.run_id);
}

RunToken ranks_secret(const LaunchOptions& options, const std::string& nonce) {
  return agents_secret(options).derive("gradring ranks " + options.run_id + " " + nonce);
}

std::string random_token() { return RunToken::draw().to_text(); }

comm::tcp::Identity identity_of(const LaunchOptions& options, AgentRole role) {
  // Without --nnodes and --node-rank: agents that disagree on these still connect, to receive an error message.
  return {.rank = role == AgentRole::leader ? 0 : 1, .world_size = kLargestWorld, .token = agents_secret(options)};
}

SharedToken::SharedToken(const LaunchOptions& options, const RunFolder& folder, PrivateFolder links)
    : lock_(locked_file(RunFolder::token_file(folder.path()), options.token)),
      link_(std::move(links), name_of(options), folder) {}

std::optional<std::string> SharedToken::find(const LaunchOptions& options, const PrivateFolder& links) try {
  const auto folder = RunLink::follow(links, name_of(options));
  if (!folder || !is_locked(RunFolder::token_file(*folder))) return std::nullopt;
  return read_private_file(RunFolder::token_file(*folder));
} catch (const InvalidArgument&) {  // the leader has ended meanwhile
  return std::nullopt;
}

void check_leader_is_here(const LaunchOptions& options) {
  if (!is_elsewhere(options.master_addr)) return;
  throw InvalidArgument(fmt::format(
      "GRADRING_TOKEN is not set, and the leading node {} is another host: set it to the same value on every "
      "node, such as one that `openssl rand -hex 32` has printed",
      options.master_addr));
}

}  // namespace gradring::train
