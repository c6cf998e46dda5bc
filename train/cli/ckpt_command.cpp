// SPDX-License-Identifier: Apache-2.0
#include "train/cli/ckpt_command.h"

#include "train/cli/ckpt_diff.h"
#include "train/cli/ckpt_inspect.h"
#include "train/cli/ckpt_ls.h"
#include "train/cli/ckpt_prune.h"
#include "train/cli/ckpt_verify.h"
#include "train/cli/run_command.h"
#include "train/cli/subcommands.h"

namespace gradring::train {
namespace {

constexpr Subcommand kActions[] = {
    {"ls", "the checkpoints of a run", ckpt_ls},
    {"verify", "compare checkpoints with what was saved, to the last bit", ckpt_verify},
    {"diff", "in which tensors two checkpoints or files differ, and how far", ckpt_diff},
    {"inspect", "the tensors of a checkpoint or file: shapes, types, ranges", ckpt_inspect},
    {"prune", "remove checkpoints that need not stay", ckpt_prune},
};

constexpr CommandGroup kCkpt{.command = "gradring ckpt",
                             .purpose = "checkpoints, and files of tensors",
                             .kind = "action",
                             .usage = "ACTION PATH... [OPTIONS]",
                             .subcommands = kActions};

}  // namespace

int ckpt_main(std::span<const std::string> args) {
  return run_command("gradring ckpt", [args] { return run_subcommand(kCkpt, args); });
}

}  // namespace gradring::train
