// SPDX-License-Identifier: Apache-2.0
#include "train/launch/options/settle.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>

#include "kernels/runtime/error.h"
#include "train/launch/options/value.h"
#include "train/launch/places/places.h"

namespace gradring::train {
namespace {

constexpr int kMostWorkers = 4096;
constexpr const char* kDefaultPort = ":29400";  // c10d's

int counted_gpus(const LaunchDraft& draft, const LaunchWorld& world) {
  return draft.options.devices.empty() ? world.gpus : static_cast<int>(draft.options.devices.size());
}

int number_of_workers(const LaunchDraft& draft, const LaunchWorld& world) try {
  const int gpus = counted_gpus(draft, world);
  if (!draft.nproc) return std::max(1, static_cast<int>(draft.options.devices.size()));
  const std::string& text = *draft.nproc;
  if (text == "xpu") throw InvalidArgument("xpu are not known here: give the number");
  if (text == "gpu" && gpus == 0) throw InvalidArgument("there is no GPU here: give the number, or say cpu");
  if (text == "gpu" || (text == "auto" && gpus > 0)) return gpus;
  return text == "auto" || text == "cpu" ? world.cores : whole_number(text, 1, kMostWorkers);
} catch (const InvalidArgument& error) {
  throw InvalidArgument(fmt::format("--nproc-per-node={}: {}", draft.nproc.value_or(""), error.what()));
}

void settle_workers(LaunchDraft& draft, const LaunchWorld& world) {
  LaunchOptions& options = draft.options;
  options.nproc_per_node = number_of_workers(draft, world);
  const auto devices = static_cast<int>(options.devices.size());
  if (devices > 0 && options.nproc_per_node > devices)
    throw InvalidArgument(
        fmt::format("--nproc-per-node={} workers cannot share the {} of --devices: name more, or "
                    "start fewer",
                    options.nproc_per_node, devices));
  if (options.virtual_local_rank && devices == 0) {
    options.devices = comma_separated(world.lookup("CUDA_VISIBLE_DEVICES").value_or(""));
    for (int i = static_cast<int>(options.devices.size()); i < options.nproc_per_node; ++i)
      options.devices.push_back(std::to_string(i));
  }
}

/// A PyTorchJob of an old operator tells a pod no more than its number and how many there are.
void take_pod(LaunchDraft& draft, const LaunchWorld& world) {
  if (draft.has_nnodes || draft.standalone || draft.options.rendezvous == Rendezvous::dynamic) return;
  const auto pod = place_by_pytorch_job(VariableReader(world.lookup));
  if (!pod || pod->world_size == 1) return;
  draft.options.nnodes = {pod->world_size, pod->world_size};
  draft.options.node_rank = pod->rank;
  draft.master_addr = draft.master_addr.value_or(pod->master_addr);
  draft.master_port = draft.master_port.value_or(pod->master_port);
}

void settle_nodes(const LaunchDraft& draft) {
  const LaunchOptions& options = draft.options;
  if (options.node_rank >= options.nnodes.most)
    throw InvalidArgument(fmt::format("--node-rank={} is outside --nnodes={}: nodes go from 0 to {}", options.node_rank,
                                      options.nnodes.most, options.nnodes.most - 1));
  if (options.nnodes.most == 1) return;
  if (options.rendezvous == Rendezvous::by_address && !draft.standalone && !draft.master_addr &&
      draft.rdzv_endpoint.value_or("").empty())
    throw InvalidArgument("--nnodes above 1 needs --master-addr=HOST, an address of node 0 that the others reach");
  if (draft.standalone) throw InvalidArgument("--standalone is for one machine: leave it out, or --nnodes");
}

void check_ranks(const char* option, int highest, int workers) {
  if (highest >= workers)
    throw InvalidArgument(fmt::format("{} names local rank {}, but the {} workers here go from 0 to {}", option,
                                      highest, workers, workers - 1));
}

void settle_logs(const LaunchDraft& draft) {
  const LaunchOptions& options = draft.options;
  check_ranks("--redirects", options.logs.redirects.highest_rank(), options.nproc_per_node);
  check_ranks("--tee", options.logs.tee.highest_rank(), options.nproc_per_node);
  const auto& shown = options.logs.shown;
  check_ranks("--local-ranks-filter", shown.empty() ? -1 : std::ranges::max(shown), options.nproc_per_node);
}

/// An address of IPv6 may stand in brackets, and must where a port follows.
std::string without_brackets(const std::string& host) {
  return host.starts_with('[') && host.ends_with(']') ? host.substr(1, host.size() - 2) : host;
}

bool is_ipv6(const std::string& host) {
  in6_addr address{};
  return ::inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

bool has_port(const std::string& endpoint) {
  const auto colon = endpoint.rfind(':');
  if (colon == std::string::npos || endpoint.ends_with(']')) return false;
  return endpoint.find(':') == colon || endpoint[colon - 1] == ']';
}

/// "host:29500", "[::1]:29500"
void read_endpoint(const std::string& endpoint, std::string& host, int& port) try {
  if (!has_port(endpoint)) throw InvalidArgument("must be HOST:PORT, or [ADDRESS]:PORT of IPv6");
  const auto colon = endpoint.rfind(':');
  host = without_brackets(endpoint.substr(0, colon));
  if (host.empty()) throw InvalidArgument("must be HOST:PORT");
  if (host.find_first_of(":[]") != std::string::npos && !is_ipv6(host))
    throw InvalidArgument(fmt::format("'{}' is no address of IPv6: it must be HOST:PORT, or [ADDRESS]:PORT", host));
  port = whole_number(endpoint.substr(colon + 1), 1, 65535);
} catch (const InvalidArgument& error) {
  throw InvalidArgument(fmt::format("--rdzv-endpoint={}: {}", endpoint, error.what()));
}

void settle_static(LaunchDraft& draft) {
  LaunchOptions& options = draft.options;
  if (draft.rdzv_endpoint && !draft.rdzv_endpoint->empty()) {
    read_endpoint(*draft.rdzv_endpoint, options.master_addr, options.master_port);
    if (without_brackets(draft.master_addr.value_or(options.master_addr)) != options.master_addr ||
        draft.master_port.value_or(options.master_port) != options.master_port)
      throw InvalidArgument(fmt::format("--rdzv-endpoint={} contradicts --master-addr and --master-port: leave one out",
                                        *draft.rdzv_endpoint));
  }
  options.master_addr = without_brackets(draft.master_addr.value_or(options.master_addr));
  options.master_port = draft.master_port.value_or(options.master_port);
}

/// Over several nodes the endpoint is where they meet. On one, the workers are each other's masters.
void settle_dynamic(LaunchDraft& draft, const LaunchWorld& world) {
  LaunchOptions& options = draft.options;
  if (options.nnodes.most > 1) {
    const std::string endpoint = draft.rdzv_endpoint.value_or("");
    if (endpoint.empty())
      throw InvalidArgument("--rdzv-backend=c10d over several machines needs --rdzv-endpoint=HOST:PORT");
    const std::string bracketed =
        endpoint.find(':') == std::string::npos ? endpoint : "[" + without_brackets(endpoint) + "]";
    read_endpoint(has_port(endpoint) ? endpoint : bracketed + kDefaultPort, options.master_addr, options.master_port);
    return;
  }
  options.master_addr = without_brackets(draft.master_addr.value_or(draft.local_addr.value_or("localhost")));
  options.master_port = draft.master_port ? *draft.master_port : world.free_tcp_port();
}

}  // namespace

void settle(LaunchDraft& draft, const LaunchWorld& world) {
  settle_workers(draft, world);
  take_pod(draft, world);
  settle_nodes(draft);
  settle_logs(draft);
  draft.options.local_addr = without_brackets(draft.local_addr.value_or(""));
  draft.options.last_call = draft.last_call.value_or(draft.options.last_call);
  draft.options.join_timeout = draft.join_timeout.value_or(draft.options.join_timeout);
  draft.options.token = world.lookup("GRADRING_TOKEN").value_or("");
  draft.options.run_id = draft.run_id.value_or(draft.standalone ? world.random_run_id() : "none");
  if (draft.standalone) draft.options.rendezvous = Rendezvous::dynamic;
  draft.options.rendezvous == Rendezvous::dynamic ? settle_dynamic(draft, world) : settle_static(draft);
}

}  // namespace gradring::train
