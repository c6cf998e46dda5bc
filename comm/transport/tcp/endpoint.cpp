// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/tcp/endpoint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>

#include "comm/error.h"
#include "comm/transport/tcp/run_token.h"

namespace gradring::comm::tcp {
namespace {

constexpr int kVersion = 1;  // of the protocol between ranks

std::string key_of(const TcpSpec& spec, int rank) { return fmt::format("tcp/{}/{}", spec.name, rank); }

void check_same_world(const TcpSpec& spec, int rank, const Endpoint& mine, const Endpoint& theirs) {
  if (theirs.version == mine.version && theirs.world_size == mine.world_size) return;
  throw Desync(
      {spec.rank, rank, "join", 0},
      fmt::format(
          "ranks do not match: rank {} has world size {} and protocol version {}, rank {} ({}) has world size {} "
          "and protocol version {}; start all ranks with the same gradring and the same world size",
          spec.rank, mine.world_size, mine.version, rank, theirs.description(), theirs.world_size, theirs.version));
}

}  // namespace

std::string Endpoint::to_text() const {
  return fmt::format("{} {} {} {} {} {} {}", version, world_size, host, port, pid, token, node);
}

Endpoint Endpoint::parse(const std::string& text) {
  std::istringstream fields(text);
  Endpoint endpoint;
  fields >> endpoint.version >> endpoint.world_size >> endpoint.host >> endpoint.port >> endpoint.pid >>
      endpoint.token >> endpoint.node;
  check<DeviceError>(static_cast<bool>(fields), "invalid endpoint of a rank in the store: found '" + text +
                                                    "', expected 'VERSION WORLD_SIZE HOST PORT PID TOKEN NODE'");
  return endpoint;
}

std::string Endpoint::description() const { return fmt::format("process {} on {}", pid, node); }

Endpoint local_endpoint(const TcpSpec& spec, const SocketAddress& listening) {
  char name[256] = {};
  const bool named = ::gethostname(name, sizeof name - 1) == 0 && name[0] != '\0';
  std::string node = named ? name : "unknown-host";
  std::replace(node.begin(), node.end(), ' ', '-');
  return {.version = kVersion,
          .world_size = spec.world_size,
          .host = listening.host(),
          .port = listening.port(),
          .pid = ::getpid(),
          .token = spec.rank == 0 && spec.token.empty() ? RunToken::draw().to_text() : "-",
          .node = std::move(node)};
}

std::vector<Endpoint> exchange_endpoints(Store& store, const TcpSpec& spec, const Endpoint& mine, Deadline deadline) {
  const auto began = Deadline::Clock::now();
  store.set(key_of(spec, spec.rank), mine.to_text());
  std::vector<Endpoint> endpoints;
  std::vector<int> missing;
  for (int rank = 0; rank < spec.world_size; ++rank) {
    try {
      endpoints.push_back(Endpoint::parse(store.wait(key_of(spec, rank), deadline)));
      check_same_world(spec, rank, mine, endpoints.back());
    } catch (const Timeout&) {
      missing.push_back(rank);
    }
  }
  if (missing.empty()) return endpoints;
  const auto waited = std::chrono::duration<double>(Deadline::Clock::now() - began);
  throw Timeout(
      {spec.rank, missing.front(), "join", 0},
      fmt::format(
          "rank {} waited {:.1f} s for rank {} of a world of {} to join: start the missing ranks, give all ranks the "
          "same world size and store, or raise the timeout",
          spec.rank, waited.count(), fmt::join(missing, ", "), spec.world_size));
}

}  // namespace gradring::comm::tcp
