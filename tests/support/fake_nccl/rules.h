// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "comm/transports/nccl/nccl_api.h"
#include "tests/support/fake_nccl/state.h"

/// What NCCL 2.28 forbids, one function per rule, with what NCCL does and where that is documented or coded. A rule
/// returns what is wrong, or nothing. rules.cpp first has those that NCCL reports, then those that it does not notice.
/// Waits inside NCCL are in communicators.cpp and groups.cpp. What depends on streams, such as work behind a group in
/// progress, is in fake_gpu.cpp.
namespace gradring::tests {

using Wrong = std::optional<std::string>;
using comm::nccl::dtype_of;

Wrong in_progress(bool settled);
Wrong revoked(const ncclComm& comm);
Wrong invalid_config(const ncclConfig_t& config);
Wrong same_gpu(const ncclComm& one, const ncclComm& other);
Wrong stream_of_another_gpu(const Operation& operation);
Wrong mixes_blocking(const std::vector<Operation>& group);

Wrong freed(const ncclComm& comm);
Wrong frees_with_another_device(const ncclComm& comm, int current);
Wrong frees_under_a_graph(const ncclComm& comm);
Wrong outside_of_group(int depth);
Wrong set_too_late(int rank, const Environment& environment, const std::string& name, const std::string& value);
Wrong overlapping_buffers(const std::vector<Operation>& group);
Wrong captured_by_another_thread(const Operation& operation);
Wrong mixed_registration(const Operation& send, const Operation& receive);
Wrong mixed_capture(const Operation& one, const Operation& other);
Wrong mismatched_sizes(const Operation& send, const Operation& receive);
Wrong mismatched_reductions(const Operation& one, const Operation& other);

}  // namespace gradring::tests
