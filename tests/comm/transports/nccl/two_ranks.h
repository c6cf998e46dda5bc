// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>

#include <functional>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/fake_nccl/fake_gpu.h"
#include "tests/support/fake_nccl/fake_nccl.h"

namespace gradring::tests {

inline constexpr std::chrono::seconds kMisuseTimeout(30);
inline constexpr std::chrono::milliseconds kHangs(100);  // what does not return in this time is taken to hang

/// Two ranks on the fake NCCL, with a GPU, a stream and a buffer each, driven by one thread. The destructor fails the
/// test if there is misuse that nothing has taken.
struct TwoRanks {
  struct Setup {
    FakeNccl::Behaviour behaviour = {};
    bool make_current = true;
    std::map<std::string, std::string> environment = {};  // of both ranks
  };
  TwoRanks() : TwoRanks(Setup{}) {}
  explicit TwoRanks(const Setup& setup) : nccl(setup.behaviour, misuse) {
    for (const auto& [name, value] : setup.environment)
      for (const int rank : {0, 1}) nccl.set_environment(rank, name, value);
    ncclUniqueId id{};
    api[0].get_unique_id(&id);
    for (const int rank : {0, 1}) {
      FakeGpu::make_current(setup.make_current ? rank : 0);
      init(rank, id, 0);
    }
    FakeGpu::make_current(0);
  }

  ~TwoRanks() { EXPECT_THAT(misuse.take(), ::testing::IsEmpty()); }

  ncclResult_t init(int rank, const ncclUniqueId& id, int blocking) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = blocking;
    return api[rank].comm_init_rank_config(&comm[rank], 2, id, rank, &config);
  }
  /// Gives the ranks other communicators: rank 0's is blocking.
  void init_with_a_blocking_rank() {
    ncclUniqueId id{};
    api[0].get_unique_id(&id);
    FakeGpu::make_current(1);
    init(1, id, 0);
    FakeGpu::make_current(0);
    init(0, id, 1);
  }
  /// The state of a rank's communicator when it is no longer in progress, or ncclInProgress if it stays so.
  ncclResult_t settle(int rank) {
    ncclResult_t state = ncclInProgress;
    for (int poll = 0; poll < 10 && state == ncclInProgress; ++poll) api[rank].comm_get_async_error(comm[rank], &state);
    return state;
  }
  ncclResult_t send(int rank, const float* from) {
    return api[rank].send(from, 8, ncclFloat32, 1 - rank, comm[rank], handle(rank));
  }
  ncclResult_t receive(int rank, float* to) {
    return api[rank].recv(to, 8, ncclFloat32, 1 - rank, comm[rank], handle(rank));
  }
  ncclResult_t all_reduce(int rank, const float* from, float* to, std::size_t count = 8) {
    return api[rank].all_reduce(from, to, count, ncclFloat32, ncclSum, comm[rank], handle(rank));
  }
  /// Rank 0 sends `from`, and rank 1 receives it in `to`, which is enqueued when it returns.
  void exchange(const float* from, float* to) {
    begin_exchange(from, to);
    ASSERT_EQ(settle(0), ncclSuccess);
    ASSERT_EQ(settle(1), ncclSuccess);
  }
  void begin_exchange(const float* from, float* to) {
    ASSERT_EQ(settle(0), ncclSuccess);
    ASSERT_EQ(settle(1), ncclSuccess);
    group(0, [&] { EXPECT_EQ(send(0, from), ncclSuccess); });
    group(1, [&] { EXPECT_EQ(receive(1, to), ncclSuccess); });
  }
  template <class Calls>
  ncclResult_t group(int rank, const Calls& calls) {
    api[rank].group_start();
    calls();
    return api[rank].group_end();
  }
  void synchronize() {
    for (const auto& one : stream) one->synchronize(Deadline::after(kMisuseTimeout));
  }
  /// The only misuse.
  std::string noted() {
    std::vector<std::string> texts;
    poll_until([&] { return !(texts = misuse.take()).empty(); }, Deadline::after(kMisuseTimeout));
    EXPECT_THAT(texts, ::testing::SizeIs(1));
    return texts.empty() ? "" : texts.front();
  }
  cudaStream_t handle(int rank) { return static_cast<cudaStream_t>(stream[rank]->native_handle()); }
  std::string last_error(int rank) { return api[rank].get_last_error(comm[rank]); }

  MisuseLog misuse;
  FakeGpu gpu[2]{{0, misuse}, {1, misuse}};
  std::unique_ptr<kernels::Stream> stream[2]{gpu[0].make_stream(kernels::StreamMode::asynchronous),
                                             gpu[1].make_stream(kernels::StreamMode::asynchronous)};
  float memory[2][16] = {};
  ncclComm_t comm[2] = {};
  FakeNccl nccl;  // last: its destructor ends what hangs on the streams
  comm::nccl::Api api[2]{nccl.api(0), nccl.api(1)};
};

/// Whether `call` still runs after a while; it must end when `end` is called.
inline bool hangs(const std::function<void()>& call, const std::function<void()>& end) {
  std::promise<void> begun;
  auto running = std::async(std::launch::async, [&] {
    begun.set_value();
    call();
  });
  begun.get_future().wait();
  const bool hung = running.wait_for(kHangs) == std::future_status::timeout;
  end();
  EXPECT_EQ(running.wait_for(kMisuseTimeout), std::future_status::ready);
  return hung;
}

}  // namespace gradring::tests
