// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <functional>
#include <string>

namespace gradring::train::api {

// Two classes are called gradring::Error: that of kernels/base/error.h, the root of all that the packages throw, and that of
// the API (gradring::v1::Error). No source includes both headers; these functions lead from one to the other.

/// Runs the body of a function of the API: what the packages throw leaves it as the API's Error, and what the caller's
/// own functions throw (run_callers_code) as it was.
void run_api_call(const std::function<void()>& body);

/// Runs a function of the API's caller.
void run_callers_code(const std::function<void()>& code);

/// An error for a user of the API.
struct Failure {
  std::string message;
  int exit_code = 1;
  std::exception_ptr callers;  ///< what a function of the caller threw; null: an error of ours
};

/// Errors    rethrows what is no std::exception.
Failure failure_of(const std::exception_ptr& error);

/// Leaves the message for the launcher, if one that reads it has started this process, and no earlier error is there.
///
/// Returns   whether it has.
bool leave_for_launcher(const std::string& message);

}  // namespace gradring::train::api
