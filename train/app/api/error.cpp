// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <gradring/error.h>

#include <cstdio>

#include "train/app/api/api_call.h"

namespace gradring {
inline namespace v1 {

int report(const Error& error) {
  if (!train::api::leave_for_launcher(error.what()))
    std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, error.what());
  return error.exit_code();
}

}  // namespace v1
}  // namespace gradring

namespace gradring::train::api {

void run_api_call(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error&) {  // of a call within a call
    throw;
  } catch (...) {
    const Failure failure = failure_of(std::current_exception());
    if (failure.callers) std::rethrow_exception(failure.callers);
    throw Error(failure.message, failure.exit_code);
  }
}

}  // namespace gradring::train::api
