// SPDX-License-Identifier: Apache-2.0
#include "train/core/setup/tcp_rendezvous.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/socket.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "comm/rendezvous/tcp_store.h"
#include "comm/rendezvous/tcp_store_server.h"
#include "comm/sockets/acceptor.h"
#include "comm/sockets/dial.h"
#include "comm/sockets/handshake.h"
#include "comm/sockets/resolve.h"
#include "comm/sockets/socket_address.h"
#include "comm/transport/error.h"
#include "kernels/base/child_process.h"
#include "kernels/base/deadline.h"
#include "kernels/base/host_name.h"
#include "train/launch/workers/host.h"
#include "train/launch/workers/private_folder.h"
#include "train/options/parse_value.h"
#include "train/records/metrics/environment_error.h"

namespace gradring::train {
namespace {

namespace tcp = comm::tcp;
using comm::TcpStore;
using comm::TcpStoreServer;

constexpr std::chrono::milliseconds kJoinInterval(200), kPortInterval(10);
/// An earlier attempt of the run may still be closing its port.
constexpr std::chrono::seconds kPortDelay(2);
constexpr std::chrono::seconds kScontrolTimeout(10);

bool is_loopback(const std::string& address) { return tcp::SocketAddress(address, 0).is_loopback(); }

/// The address that Slurm itself uses for a node whose name has none; nothing if it does not say.
std::vector<tcp::SocketAddress> slurm_addresses(const std::string& node, int port) try {
  constexpr std::string_view kName = "NodeAddr=";
  ChildProcess scontrol({.words = {"scontrol", "--oneliner", "show", "node", node}});
  const std::string line = scontrol.read_line(Deadline::after(kScontrolTimeout));
  const auto at = line.find(kName);
  if (at == std::string::npos) return {};
  const std::string address = line.substr(at + kName.size(), line.find(' ', at) - at - kName.size());
  return address == node ? std::vector<tcp::SocketAddress>() : tcp::addresses_of(address, port);
} catch (const DeviceError&) {  // no scontrol here, or no answer
  return {};
}

/// Looks up where rank 0 may be reached.
class HostLookup {
 public:
  HostLookup(StoreEndpoint endpoint, bool by_slurm) : endpoint_(std::move(endpoint)), by_slurm_(by_slurm) {}

  /// Errors    UnresolvedName if no host has an address.
  std::vector<tcp::SocketAddress> operator()() {
    std::vector<tcp::SocketAddress> all = of_slurm_;
    std::optional<tcp::UnresolvedName> unresolved;
    for (const std::string& host : endpoint_.hosts) try {
        std::ranges::copy(tcp::addresses_of(host, endpoint_.port), std::back_inserter(all));
      } catch (const tcp::UnresolvedName& error) {
        unresolved = error;
      }
    // Asked once at most with success: every rank asks the same controller.
    if (all.empty() && by_slurm_) all = of_slurm_ = slurm_addresses(endpoint_.hosts.front(), endpoint_.port);
    if (all.empty() && unresolved) throw *unresolved;
    return all;
  }

 private:
  StoreEndpoint endpoint_;
  bool by_slurm_;
  std::vector<tcp::SocketAddress> of_slurm_;
};

/// Errors    EnvironmentError without a token.
tcp::RunToken secret_of(const WorkerEnvironment& environment, const VariableLookup& lookup) {
  const std::string token = given_token(lookup);
  // Not the attempt: torchrun's agents count restarts each for themselves.
  if (!token.empty()) return tcp::RunToken::from_secret(token).derive("gradring store " + environment.run_id);
  const bool by_hand = environment.launcher.starts_with("hand");
  throw EnvironmentError(fmt::format(
      "GRADRING_TOKEN is not set, and the {} ranks are on several machines ({} on this one): set it to the same value "
      "for all ranks, such as one that `openssl rand -hex 32` has printed{}",
      environment.world_size, environment.local_world_size,
      environment.launcher == "mpirun" ? "; Open MPI's mpirun passes it on with -x GRADRING_TOKEN"
      : by_hand                        ? "; if all ranks are on one machine, set LOCAL_RANK and LOCAL_WORLD_SIZE, too"
                                       : ""));
}

/// Whether the ranks look for rank 0 at an address of this host's interfaces.
bool is_here(const StoreEndpoint& endpoint) {
  return std::ranges::any_of(endpoint.hosts, [](const std::string& host) {
    try {
      return is_this_host(host);
    } catch (const tcp::UnresolvedName&) {
      return false;
    }
  });
}

/// Open MPI says where mpirun runs. Rank 0 may have been put on another host, where nobody would look for it.
void check_rank_0_is_there(const WorkerEnvironment& environment, const StoreEndpoint& endpoint) {
  if (environment.launcher != "mpirun" || environment.master_source.empty() || is_here(endpoint)) return;
  throw EnvironmentError(
      fmt::format("mpirun runs on {} ({}), but rank 0 on {}: set MASTER_ADDR to an address of that host, mpirun -x "
                  "MASTER_ADDR={}",
                  fmt::join(endpoint.hosts, ","), environment.master_source, host_name(), host_name()));
}

// Rank 0 may run on another host than MASTER_ADDR says. Only a message from it tells that from a rank 0 that is late. So
// the first rank of another node that finds itself at MASTER_ADDR stands in: between its tries to reach rank 0, it
// listens at the port, and rank 0 sends it the name of its own host. They have an Identity for this alone.

constexpr std::chrono::milliseconds kStandInTime(100), kStandInPause(200);  // the pause is for a rank 0 on this host

[[noreturn]] void throw_rank_0_is_elsewhere(const StoreEndpoint& endpoint, const std::string& host) {
  throw EnvironmentError(
      fmt::format("rank 0 runs on {}, but MASTER_ADDR is {}, where another rank waits for it: set MASTER_ADDR, for all "
                  "ranks, to the host of rank 0, or start rank 0 there",
                  host, fmt::join(endpoint.hosts, ",")));
}

/// Errors    EnvironmentError if rank 0 says that it runs on another host.
void stand_in(const StoreEndpoint& endpoint, const tcp::Identity& self) try {
  constexpr std::size_t kOwnDescriptors = 32, kMaxHostName = 255;
  constexpr std::chrono::milliseconds kAnswerTime(1000), kNap(5);
  tcp::Acceptor acceptor("", endpoint.port, self, self.world_size, kOwnDescriptors);
  for (const Deadline until = Deadline::after(kStandInTime); !until.passed(); sleep_for(kNap))
    for (const tcp::Admitted& rank_0 : acceptor.admit()) {
      std::string host(kMaxHostName, '\0');
      ssize_t size = 0;
      const auto is_received = [&] { return (size = ::recv(rank_0.socket.get(), host.data(), host.size(), 0)) >= 0; };
      if (poll_until(is_received, Deadline::after(kAnswerTime)) && size > 0)
        throw_rank_0_is_elsewhere(endpoint, host.substr(0, static_cast<std::size_t>(size)));
    }
} catch (const DeviceError&) {  // another rank stands in, or rank 0 has come
}

/// Whether a rank that stands in for rank 0 has been told where that runs.
bool tell_stand_in(const StoreEndpoint& endpoint, const tcp::Identity& self, bool by_slurm) try {
  tcp::Reasons reasons;
  const auto peer = tcp::dial_first(HostLookup(endpoint, by_slurm)(), self, tcp::kStandInRank,
                                    {.closed = "", .rejected = ""}, Deadline::after(kJoinInterval), reasons);
  const std::string host = host_name();
  return peer && ::send(peer->socket.get(), host.data(), host.size(), MSG_NOSIGNAL) > 0;
} catch (const Error&) {  // an unknown name, or the store of a rank 0
  return false;
}

std::unique_ptr<TcpStoreServer> serve(const StoreEndpoint& endpoint, const tcp::Identity& self) {
  const Deadline deadline = Deadline::after(kPortDelay);
  for (;;) try {
      return std::make_unique<TcpStoreServer>(endpoint.port, self);
    } catch (const tcp::CannotListen& error) {
      const bool in_use = dynamic_cast<const tcp::AddressInUse*>(&error) != nullptr;
      if (!in_use || deadline.passed())
        throw EnvironmentError(
            fmt::format("rank 0 cannot serve the ranks' store at port {}: {}; set GRADRING_RENDEZVOUS_PORT, for all "
                        "ranks, to a port that is free on {}",
                        endpoint.port, error.what(), host_name()));
      sleep_for(kPortInterval);
    }
}

/// Errors    EnvironmentError if rank 0 belongs to another run.
std::unique_ptr<TcpStore> connect(const WorkerEnvironment& environment, const StoreEndpoint& endpoint,
                                  const tcp::Identity& self, const tcp::Identity& stands_in,
                                  std::chrono::nanoseconds timeout) try {
  const bool may_stand_in = environment.local_rank == 0 && environment.group_rank != 0;
  const auto pause = [&](std::chrono::nanoseconds time) {
    if (!may_stand_in || !is_here(endpoint)) return sleep_for(time);
    stand_in(endpoint, stands_in);
    sleep_for(kStandInPause);
  };
  return std::make_unique<TcpStore>(
      comm::TcpStoreSpec{.addresses = HostLookup(endpoint, environment.launcher == "srun"),
                         .where = endpoint.to_string(),
                         .self = self,
                         .timeout = timeout,
                         .pause = pause});
} catch (const InvalidArgument& error) {
  throw EnvironmentError(error.what());
}

std::unique_ptr<TcpStore> join_once(const WorkerEnvironment& environment, const StoreEndpoint& endpoint,
                                    const tcp::Identity& self, const tcp::Identity& stands_in,
                                    std::chrono::nanoseconds timeout) {
  const Deadline deadline = Deadline::after(kSameRankDelay);
  for (;;) {
    auto store = connect(environment, endpoint, self, stands_in, timeout);
    if (claim_rank(*store, environment.rank)) return store;
    if (deadline.passed())
      throw EnvironmentError(
          fmt::format("another process has joined the run of rank 0 at {} as rank {}: give each run a port of its own "
                      "(GRADRING_RENDEZVOUS_PORT), and each process a rank of its own",
                      store->where(), environment.rank));
    sleep_for(kJoinInterval);
  }
}

std::string published_address(comm::Store& store, const WorkerEnvironment& environment, Deadline deadline,
                              const std::string& where) {
  try {
    return store.wait(TcpStoreServer::kAddressKey, deadline);
  } catch (const comm::Timeout&) {
    throw comm::Timeout(
        {.rank = environment.rank, .peer = -1, .operation = "join"},
        fmt::format("rank {} of {} waited for a rank of another machine to connect to rank 0 at {}: look at their "
                    "logs, check that the hosts reach each other at this port, or raise --timeout",
                    environment.rank, environment.world_size, where));
  }
}

/// For rank 0 on a host without the address MASTER_ADDR. Returns once a rank has connected, or at the deadline.
///
/// Errors    EnvironmentError if a rank stands in for it.
void look_for_stand_in(comm::Store& store, const WorkerEnvironment& environment, const StoreEndpoint& endpoint,
                       const tcp::Identity& self, Deadline deadline) {
  while (!deadline.passed()) try {
      store.wait(TcpStoreServer::kAddressKey, Deadline::after(deadline.nap()));
      return;
    } catch (const comm::Timeout&) {
      if (tell_stand_in(endpoint, self, environment.launcher == "srun"))
        throw_rank_0_is_elsewhere(endpoint, host_name());
    }
}

}  // namespace

bool claim_rank(comm::Store& store, int rank) { return store.add(fmt::format("process/{}", rank), 1) == 1; }

std::string StoreEndpoint::to_string() const {
  return tcp::endpoint_text(fmt::format("{}", fmt::join(hosts, ",")), port);
}

StoreEndpoint store_endpoint(const WorkerEnvironment& environment) {
  StoreEndpoint endpoint;
  for (std::string host : comma_separated(environment.master_addr)) {
    std::erase_if(host, [](char c) { return c == '[' || c == ']'; });
    if (!host.empty()) endpoint.hosts.push_back(host);
  }
  if (endpoint.hosts.empty())
    throw EnvironmentError(fmt::format(
        "{} ranks are on several machines, and nothing says on which of them rank 0 is: set MASTER_ADDR for all ranks "
        "to the name or the address of its host",
        environment.world_size));
  const bool above = environment.use_agent_store;
  endpoint.port = environment.rendezvous_port != 0 ? environment.rendezvous_port : environment.master_port + above;
  if (endpoint.port < 1 || endpoint.port > kHighestPort)
    throw EnvironmentError(
        fmt::format("MASTER_PORT={} leaves no port for the ranks' store{}: set MASTER_PORT or "
                    "GRADRING_RENDEZVOUS_PORT, for all ranks, to one that is free on the host of rank 0",
                    environment.master_port, above ? ", which is one above it" : ""));
  return endpoint;
}

TcpRendezvous join_over_tcp(const WorkerEnvironment& environment, std::chrono::nanoseconds timeout,
                            const VariableLookup& lookup, const std::string& run_dir) {
  const Deadline deadline = Deadline::after(timeout);
  const StoreEndpoint endpoint = store_endpoint(environment);
  const tcp::RunToken secret = secret_of(environment, lookup);
  const tcp::Identity self{environment.rank, environment.world_size, secret.derive("run directory " + run_dir)};
  const tcp::Identity stands_in{environment.rank == 0 ? 0 : tcp::kStandInRank, environment.world_size,
                                secret.derive("stand-in for rank 0")};
  TcpRendezvous rendezvous{.address = environment.node_address, .token = secret.derive("gradring ranks").to_text()};
  std::string where = endpoint.to_string();
  if (environment.rank == 0) {
    check_rank_0_is_there(environment, endpoint);
    auto server = serve(endpoint, self);
    where = server->where();
    rendezvous.store = std::move(server);
    if (!is_here(endpoint)) {
      where += fmt::format(" on {}, though MASTER_ADDR={} is no address of its interfaces", host_name(),
                           fmt::join(endpoint.hosts, ","));
      look_for_stand_in(*rendezvous.store, environment, endpoint, stands_in, deadline);
    }
  } else {
    auto store = join_once(environment, endpoint, self, stands_in, timeout);
    where = store->where();
    // Ranks on the host of rank 0 may know it by its own name, 127.0.1.1 in /etc/hosts.
    if (rendezvous.address.empty() && !is_loopback(store->own_address())) rendezvous.address = store->own_address();
    rendezvous.store = std::move(store);
  }
  if (rendezvous.address.empty())
    rendezvous.address = published_address(*rendezvous.store, environment, deadline, where);
  return rendezvous;
}

}  // namespace gradring::train
