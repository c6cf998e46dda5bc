// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/error.h"
#include "train/launch/options/option.h"
#include "train/launch/options/value.h"

namespace gradring::train {
namespace {

constexpr int kMostNodes = 65536;

void read_nproc(LaunchDraft& draft, const std::string& value) { draft.nproc = value; }

void read_nnodes(LaunchDraft& draft, const std::string& value) {
  const auto colon = value.find(':');
  NodeRange& nodes = draft.options.nnodes;
  draft.has_nnodes = true;
  nodes.least = whole_number(value.substr(0, colon), 1, kMostNodes);
  nodes.most = colon == std::string::npos ? nodes.least : whole_number(value.substr(colon + 1), 1, kMostNodes);
  if (nodes.least > nodes.most) throw InvalidArgument("is MIN:MAX with a MIN above its MAX");
}

void read_node_rank(LaunchDraft& draft, const std::string& value) {
  draft.options.node_rank = whole_number(value, 0, kMostNodes - 1);
}

void read_devices(LaunchDraft& draft, const std::string& value) {
  draft.options.devices = comma_separated(value);
  for (const std::string& device : draft.options.devices)
    if (device.empty()) throw InvalidArgument("must be a list of GPUs such as 0,1,5");
}

void read_role(LaunchDraft& draft, const std::string& value) { draft.options.role = value; }

void read_virtual_local_rank(LaunchDraft& draft, const std::string& value) {
  draft.options.virtual_local_rank = value == "1";
}

void read_no_python(LaunchDraft& draft, const std::string& value) { draft.is_no_python = value == "1"; }
void read_module(LaunchDraft& draft, const std::string& value) { draft.is_module = value == "1"; }
void read_run_path(LaunchDraft& draft, const std::string& value) { draft.is_run_path = value == "1"; }

void read_start_method(LaunchDraft&, const std::string& value) {
  if (value != "spawn" && value != "fork" && value != "forkserver")
    throw InvalidArgument("must be spawn, fork or forkserver");
}

void read_numa_binding(LaunchDraft&, const std::string&) {
  throw InvalidArgument("binding to NUMA nodes is not built yet: leave it out; `train --pin` binds to cores");
}

constexpr Option kOptions[] = {
    {"nproc-per-node", 0, "N",
     "workers to start here; cpu: one per core, gpu: one per GPU, auto: gpu if there is one, "
     "else cpu (default 1, or one per --devices)",
     read_nproc},
    {"devices", 0, "LIST", "the GPUs to use, as CUDA_VISIBLE_DEVICES takes them (default: all)", read_devices},
    {"virtual-local-rank", 0, nullptr, "every worker sees LOCAL_RANK 0 and one GPU", read_virtual_local_rank},
    {"nnodes", 0, "N|MIN:MAX",
     "machines of the run; MIN:MAX: as many as come, and the run goes on with fewer or more (default 1)", read_nnodes},
    {"node-rank", 0, "N", "this machine's number among them (default 0)", read_node_rank},
    {"role", 0, "NAME", "the workers' ROLE_NAME (default default)", read_role},
    {"no-python", 0, nullptr, "what follows is a program", read_no_python},
    {"module", 'm', nullptr, "what follows is a Python module", read_module},
    {"run-path", 0, nullptr, "what follows is a Python script, whatever its name ends in", read_run_path},
    {"start-method", 0, "NAME", "spawn, fork or forkserver; programs start in one way (default spawn)",
     read_start_method},
    {"numa-binding", 0, "NAME", "not built yet", read_numa_binding},
};

}  // namespace

std::span<const Option> worker_options() { return kOptions; }

}  // namespace gradring::train
