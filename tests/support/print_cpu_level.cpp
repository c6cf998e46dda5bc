// SPDX-License-Identifier: Apache-2.0
// Prints the highest level of the instruction set that this build and this processor have.
#include <cstdio>
#include <string>

#include "kernels/runtime/cpu_level.h"

int main() {
  using namespace gradring::kernels;
  std::puts(std::string(cpu_level_name(supported_cpu_level())).c_str());
}
