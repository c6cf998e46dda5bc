// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "kernels/runtime/error.h"
#include "kernels/runtime/nearest_name.h"
#include "train/launch/options/option.h"
#include "train/launch/options/value.h"

namespace gradring::train {
namespace {

constexpr int kHighestPort = 65535;

void read_standalone(LaunchDraft& draft, const std::string& value) { draft.standalone = value == "1"; }

void read_rdzv_backend(LaunchDraft& draft, const std::string& value) {
  if (value == "static")
    draft.options.rendezvous = Rendezvous::by_address;
  else if (value == "c10d")
    draft.options.rendezvous = Rendezvous::dynamic;
  else
    throw InvalidArgument("must be static or c10d: etcd is not spoken here");
}

void read_rdzv_endpoint(LaunchDraft& draft, const std::string& value) { draft.rdzv_endpoint = value; }
void read_rdzv_id(LaunchDraft& draft, const std::string& value) { draft.run_id = value; }
void read_master_addr(LaunchDraft& draft, const std::string& value) { draft.master_addr = value; }
void read_local_addr(LaunchDraft& draft, const std::string& value) { draft.local_addr = value; }

void read_master_port(LaunchDraft& draft, const std::string& value) {
  draft.master_port = whole_number(value, 1, kHighestPort);
}

void read_rdzv_conf(LaunchDraft& draft, const std::string& value) {
  constexpr std::string_view kKnown[] = {"timeout",
                                         "join_timeout",
                                         "last_call_timeout",
                                         "close_timeout",
                                         "read_timeout",
                                         "heartbeat_timeout",
                                         "keep_alive_interval",
                                         "keep_alive_max_attempt",
                                         "is_host",
                                         "store_type",
                                         "rank"};
  for (const std::string& entry : comma_separated(value)) {
    const auto sign = entry.find('=');
    const std::string key = entry.substr(0, sign);
    if (sign == std::string::npos || key.empty()) throw InvalidArgument("must be KEY=VALUE,KEY=VALUE");
    if (std::ranges::find(kKnown, key) == std::end(kKnown))
      throw InvalidArgument(fmt::format("there is no setting '{}'.{}", key, did_you_mean(key, kKnown)));
    if (key == "timeout" || key == "join_timeout") draft.join_timeout = duration(entry.substr(sign + 1));
    if (key == "last_call_timeout") draft.last_call = duration(entry.substr(sign + 1));
  }
}

constexpr Option kOptions[] = {
    {"standalone", 0, nullptr, "a run by itself: a random run id, a free MASTER_PORT", read_standalone},
    {"master-addr", 0, "HOST", "the workers' MASTER_ADDR, an address of node 0 (default 127.0.0.1)", read_master_addr},
    {"master-port", 0, "PORT",
     "the workers' MASTER_PORT (default 29500), which gradring does not open; of several machines: where node 0 "
     "listens, and the workers have a port of their own",
     read_master_port},
    {"rdzv-id", 0, "ID", "the workers' TORCHELASTIC_RUN_ID (default none)", read_rdzv_id},
    {"rdzv-backend", 0, "NAME",
     "static: node 0 is where --master-addr and --master-port say; c10d: whoever can listen at "
     "--rdzv-endpoint leads, and nodes are numbered as they come (default static)",
     read_rdzv_backend},
    {"rdzv-endpoint", 0, "HOST[:PORT]",
     "c10d: where the leader listens, port 29400 by default; static: the same as "
     "--master-addr and --master-port. One machine needs none",
     read_rdzv_endpoint},
    {"rdzv-conf", 0, "K=V,K=V",
     "between machines: timeout or join_timeout, until enough have come (default 900); "
     "last_call_timeout, for more of them (default 30); others have no effect",
     read_rdzv_conf},
    {"local-addr", 0, "HOST", "this machine's address for the others (default: found out)", read_local_addr},
};

}  // namespace

std::span<const Option> rendezvous_options() { return kOptions; }

}  // namespace gradring::train
