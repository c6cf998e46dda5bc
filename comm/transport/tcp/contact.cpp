// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/tcp/contact.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>

#include "comm/error.h"
#include "comm/transport/tcp/run_token.h"

namespace gradring::comm::tcp {
namespace {

constexpr int kVersion = 1;  // of what ranks say to each other

std::string key_of(const TcpSpec& spec, int rank) { return fmt::format("tcp/{}/{}", spec.name, rank); }

void check_same_world(const TcpSpec& spec, int rank, const Contact& mine, const Contact& theirs) {
  if (theirs.version == mine.version && theirs.world_size == mine.world_size) return;
  throw Desync(
      {spec.rank, rank, "join", 0},
      fmt::format("rank {} is one of {} and speaks version {}, rank {} ({}) is one of {} and speaks version {}: "
                  "start all ranks with the same gradring and the same world size",
                  spec.rank, mine.world_size, mine.version, rank, theirs.description(), theirs.world_size,
                  theirs.version));
}

}  // namespace

std::string Contact::to_text() const {
  return fmt::format("{} {} {} {} {} {} {}", version, world_size, host, port, pid, token, node);
}

Contact Contact::parse(const std::string& text) {
  std::istringstream words(text);
  Contact contact;
  words >> contact.version >> contact.world_size >> contact.host >> contact.port >> contact.pid >> contact.token >>
      contact.node;
  check<DeviceError>(static_cast<bool>(words), "a rank's contact in the store is none: '" + text + "'");
  return contact;
}

std::string Contact::description() const { return fmt::format("process {} on {}", pid, node); }

Contact contact_of_this_process(const TcpSpec& spec, const SocketAddress& listening) {
  char name[256] = {};
  const bool named = ::gethostname(name, sizeof name - 1) == 0 && name[0] != '\0';
  std::string node = named ? name : "a-nameless-host";
  std::replace(node.begin(), node.end(), ' ', '-');
  return {.version = kVersion,
          .world_size = spec.world_size,
          .host = listening.host(),
          .port = listening.port(),
          .pid = ::getpid(),
          .token = spec.rank == 0 ? RunToken::draw().to_text() : "-",
          .node = std::move(node)};
}

std::vector<Contact> exchange_contacts(Store& store, const TcpSpec& spec, const Contact& mine, Deadline deadline) {
  const auto began = Deadline::Clock::now();
  store.set(key_of(spec, spec.rank), mine.to_text());
  std::vector<Contact> contacts;
  std::vector<int> missing;
  for (int rank = 0; rank < spec.world_size; ++rank) {
    try {
      contacts.push_back(Contact::parse(store.wait(key_of(spec, rank), deadline)));
      check_same_world(spec, rank, mine, contacts.back());
    } catch (const Timeout&) {
      missing.push_back(rank);
    }
  }
  if (missing.empty()) return contacts;
  const auto waited = std::chrono::duration<double>(Deadline::Clock::now() - began);
  throw Timeout(
      {spec.rank, missing.front(), "join", 0},
      fmt::format(
          "rank {} waited {:.1f} s for rank {} of a world of {} to join: start the missing ranks, check that all "
          "were given the same world size and store, or raise the timeout",
          spec.rank, waited.count(), fmt::join(missing, ", "), spec.world_size));
}

}  // namespace gradring::comm::tcp
