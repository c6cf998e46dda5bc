// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "train/launch/workers/launch_options.h"

namespace gradring::train {

/// Runs `nproc_per_node` copies of a program on this node, each in its own session, and returns when all have ended.
/// The first failure stops the others (SIGTERM, kill_grace, SIGKILL), then all restart while `restarts` allows it.
/// SIGINT is forwarded once, a second one kills. The other `handled_signals` are forwarded, SIGQUIT as SIGTERM, and
/// give the workers kill_grace to end. SIGUSR1 and SIGUSR2 are forwarded without ending the run, unless listed. On one
/// node no TCP port is opened. No process and no folder but the logs outlives this call or the death of this process.
///
/// Returns   0 if all workers returned 0, but 3 if a teed log could not be written; 130 after SIGINT, 131 after
///           SIGQUIT, 143 after another signal; else the code of the first failing worker of the last attempt: its exit
///           code, 128 + n if signal n killed it, 127 if the program does not exist, 126 if it cannot be executed.
/// Threads   call it from the main thread of a single-threaded process; the workers die with the calling thread.
/// Errors    InvalidArgument if the program is empty or nproc_per_node is not positive; DeviceError if the system runs
///           out of processes or files.
/// Example   tests/train/launch/launcher_test.cpp
int launch(const LaunchOptions& options);

/// Contract of torch.multiprocessing.spawn, for `--nprocs N`: runs `program arguments...` as N ranks and returns as
/// launch() does. The calling process is not a rank. An empty program means the running one.
int spawn_ranks(int nprocs, const std::vector<std::string>& arguments, const std::string& program = "");

/// The file of the running program, to start it again as a worker.
std::string own_program();

/// `gradring launch args...`. Returns the exit code: launch()'s, 2 for an invalid command line, 3 if the machine cannot
/// start workers. Writes errors to stderr.
int launch_main(std::span<const std::string> args);

}  // namespace gradring::train
