// SPDX-License-Identifier: Apache-2.0
#include "train/launch/launch_main.h"

#include <fmt/format.h>

#include <cstdio>

#include "kernels/runtime/error.h"
#include "kernels/runtime/write_all.h"
#include "train/launch/exit_code.h"
#include "train/launch/launcher.h"
#include "train/launch/options/launch_options.h"
#include "train/launch/standalone.h"
#include "train/launch/visible_gpus.h"

namespace gradring::train {
namespace {

int complain(const std::exception& error, ExitCode code) {
  print_to_stderr(fmt::format("gradring launch: {}\n", error.what()));
  return code;
}

}  // namespace

int launch_main(std::span<const std::string> args) {
  try {
    const ParsedLaunch parsed = parse_launch(args, {.lookup = system_variable,
                                                    .cores = usable_cores(),
                                                    .gpus = visible_gpus(system_variable),
                                                    .own_program = own_program(),
                                                    .random_run_id = random_run_id,
                                                    .free_tcp_port = free_tcp_port});
    if (!parsed.help) return launch(parsed.options);
  } catch (const InvalidArgument& error) {
    return complain(error, kUsage);
  } catch (const std::exception& error) {  // no folder, no process, no memory
    return complain(error, kEnvironment);
  }
  fmt::print("{}", launch_help());  // where that fails, main() says so
  return kOk;
}

}  // namespace gradring::train
