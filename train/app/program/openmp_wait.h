// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace gradring::train {

/// Lets OpenMP's threads, with which oneDNN computes, sleep while they wait for each other. By default those of libgomp
/// spin for 3 ms, and take the processor from the thread that they wait for where there are more threads than processors:
/// the loader's is one more. An environment that says how they wait is obeyed.
///
/// libgomp reads its variables when it is loaded, before main(). So this executes the program once more, with
/// OMP_WAIT_POLICY=passive, and removes that variable there: programs that this one starts do not inherit it. `argv`:
/// main's. If the program cannot be executed, it continues, with threads that spin.
void wait_passively_in_openmp(char** argv);

}  // namespace gradring::train
