// SPDX-License-Identifier: Apache-2.0
// simt_planted NAME forward|reverse|random: runs one planted kernel and says what became of it in its last line. What a
// sanitizer finds ends or marks the process, so each kernel has a process of its own.
#include <cstdio>
#include <cstring>

#include "kernels/host/host_device.h"
#include "kernels/simt/engine/error.h"
#include "tests/kernels/simt/planted/planted.h"

namespace {

using namespace gradring;

const simt_test::Planted* find(std::string_view name) {
  for (const auto& list : {simt_test::planted_races(), simt_test::planted_pipe_races(), simt_test::planted_accesses(),
                           simt_test::planted_divergence()})
    for (const simt_test::Planted& planted : list)
      if (planted.name == name) return &planted;
  return nullptr;
}

}  // namespace

int main(int count, char** arguments) {
  const simt_test::Planted* planted = count == 3 ? find(arguments[1]) : nullptr;
  if (!planted) {
    std::fprintf(stderr, "usage: simt_planted NAME forward|reverse|random; see kernels/simt/README.md\n");
    return 2;
  }
  simt::ExecutorOptions options{.workers = 4, .seed = 1, .poison_shared = true};
  if (std::strcmp(arguments[2], "reverse") == 0) options.order = simt::ThreadOrder::reverse;
  if (std::strcmp(arguments[2], "random") == 0) options.order = simt::ThreadOrder::random;
  kernels::HostDevice device(options);
  try {
    const bool right = planted->run(device);
    std::printf("%s result\n", right ? "right" : "wrong");
    return right ? 0 : 1;
  } catch (const simt::Error& error) {
    std::printf("simt::Error: %s\n", error.what());
    return 3;
  }
}
