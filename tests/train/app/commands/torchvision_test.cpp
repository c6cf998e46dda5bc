// SPDX-License-Identifier: Apache-2.0
// ResNet-18 against torchvision and onnxruntime. Skipped where no python3 imports torch and torchvision.
#include <gtest/gtest.h>

#include <chrono>

#include "tests/support/run_program.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_python.h"
#include "train/core/doctor/find_python.h"

namespace gradring {
namespace {

/// Within 1e-5: logits, a training step with all tensors, three steps of two ranks with another head on a frozen
/// backbone, and the exported graph.
TEST(Torchvision, ResNet18ComputesTrainsAndExportsAlike) {
  const train::PythonSearch search = train::search_python_with_torch();
  if (!search.python) GTEST_SKIP() << search.to_string();
  const tests::TempFolder folder;
  const tests::ProgramEnd end =
      tests::RunningProgram({.command = {*search.python, GRADRING_TORCHVISION_PEER, GRADRING_BINARY},
                             .folder = folder.path(),
                             .variables = {{"OMP_NUM_THREADS", "1"}}})
          .wait(std::chrono::minutes(10));  // it took two on a loaded machine
  if (end.code == tests::kPackageMissing) GTEST_SKIP() << end.out << "install torchvision by pip";
  EXPECT_EQ(end.code, 0) << end.out << end.err;
}

}  // namespace
}  // namespace gradring
