// SPDX-License-Identifier: Apache-2.0
#include "train/app/api/api_call.h"

#include "train/options/environment_variable.h"
#include "train/options/error_report.h"
#include "train/options/exit_code.h"

namespace gradring::train::api {
namespace {

struct CallersError : std::exception {
  explicit CallersError(std::exception_ptr thrown)
      : error(std::move(thrown)) {  // NOLINT(bugprone-throw-keyword-missing): a member
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& known) {
      message = known.what();
    } catch (...) {
      message = "a function of the program threw what is no std::exception";
    }
  }
  const char* what() const noexcept override { return message.c_str(); }

  std::exception_ptr error;
  std::string message;
};

}  // namespace

void run_callers_code(const std::function<void()>& code) {
  try {
    code();
  } catch (...) {
    throw CallersError(std::current_exception());
  }
}

Failure failure_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const CallersError& known) {
    return {.message = known.message, .callers = known.error};
  } catch (const std::exception& known) {
    return {.message = message_of(known), .exit_code = exit_code_of(known), .callers = nullptr};
  }
}

bool leave_for_launcher(const std::string& message) {
  const std::string file = system_variable("TORCHELASTIC_ERROR_FILE").value_or("");
  return read_error_file(file) || write_error_file(file, message);
}

}  // namespace gradring::train::api
