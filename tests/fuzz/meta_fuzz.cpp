// SPDX-License-Identifier: Apache-2.0
// A checkpoint's meta.json as it is; with the checksum that it must end in, which a fuzzer does not guess; and the
// counters that a training takes from it.
#include <string>

#include "tests/fuzz/fuzz_target.h"
#include "tests/train/support/memory_disk.h"
#include "tests/train/support/sealed_meta.h"
#include "train/core/trainer/training_progress.h"
#include "train/records/checkpoint/checkpoint.h"
#include "train/records/checkpoint/error.h"
#include "train/records/checkpoint/inspect.h"
#include "train/records/checkpoint/json_members.h"

using namespace gradring::train;

namespace {

void read(const std::string& meta) {
  gradring::tests::MemoryDisk disk;
  disk.make_folder("/a");
  write_checkpoint(disk, "/a", {});
  disk.remove_file("/a/meta.json");
  write_new_file(disk, "/a/meta.json", meta);
  verify_checkpoint(disk, "/a");
  try {
    const Checkpoint checkpoint = read_checkpoint(disk, "/a");
    different_facts(checkpoint, {});
  } catch (const CheckpointError&) {
  }
}

template <class Read>
void read_part(const nlohmann::ordered_json& about, const char* name, Read read) {
  try {
    read(about.is_object() && about.contains(name) ? about[name] : about, "fuzz");
  } catch (const CheckpointError&) {
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  read(text);
  read(gradring::tests::sealed(text));
  try {
    const nlohmann::ordered_json about = parse_checkpoint_json(text, "fuzz");
    read_part(about, "progress", progress_in);
    read_part(about, "step_state", step_state_in);
  } catch (const CheckpointError&) {
  }
  return 0;
}
