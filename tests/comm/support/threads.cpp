// SPDX-License-Identifier: Apache-2.0
#include <thread>

#include "comm/groups.h"
#include "tests/comm/support/ranks.h"

namespace gradring::tests {

std::vector<std::exception_ptr> errors_of_threads(int world, const std::function<void(comm::ProcessGroup&)>& body,
                                                  std::chrono::nanoseconds timeout) {
  comm::InProcessHub hub(world, timeout);
  return errors_of_threads(world, body, [&](int rank) { return hub.join(rank); });
}

std::vector<std::exception_ptr> errors_of_threads(int world, const std::function<void(comm::ProcessGroup&)>& body,
                                                  const Join& join) {
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(world));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < world; ++rank)
    threads.emplace_back([&, rank] {
      try {
        body(*join(rank));
      } catch (...) {
        errors[static_cast<std::size_t>(rank)] = std::current_exception();
      }
    });
  for (std::thread& thread : threads) thread.join();
  return errors;
}

void run_as_threads(int world, const std::function<void(comm::ProcessGroup&)>& body, std::chrono::nanoseconds timeout) {
  for (const std::exception_ptr& error : errors_of_threads(world, body, timeout))
    if (error) std::rethrow_exception(error);
}

}  // namespace gradring::tests
