// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/machine/progress_report.h"

#include <bit>
#include <string_view>

#include "kernels/simulated_gpu/machine/fault_report.h"

namespace gradring::simulated_gpu {
namespace {

constexpr std::size_t kMostGroups = 8;

std::string count_of(std::uint64_t count, const char* what) { return joined(count, ' ', what, count == 1 ? "" : "s"); }

}  // namespace

WaitReport::For WaitReport::waits_for(const Program& program, const Fragment& fragment) {
  const std::size_t position = fragment.waiting_position();
  const bool is_known = position < program.kernel->code.size();
  const std::string_view opcode = is_known ? program.kernel->code[position].words.front() : "";
  switch (fragment.state) {
    case Fragment::State::ready: return opcode == "mbarrier" || opcode == "barrier" ? For::phase : For::memory;
    case Fragment::State::polling: return For::phase;
    case Fragment::State::at_collective: return For::lanes;
    case Fragment::State::at_barrier: break;
  }
  return For::barrier;
}

void WaitReport::add(const Cluster& cluster) {
  for (unsigned rank = 0; rank < cluster.size(); ++rank) add(cluster.block(rank));
}

void WaitReport::add(const Block& block) {
  for (unsigned index = 0; index < block.warp_count(); ++index) {
    const Warp& warp = block.warp(index);
    for (const Fragment& fragment : warp.waiting()) {
      Group& group = groups_[{waits_for(block.program(), fragment), fragment.waiting_position()}];
      if (group.threads == 0) {
        group.first =
            finding_at(warp, FindingKind::deadlock, fragment.waiting_position(), lowest_lane(fragment.lanes), "");
        group.instruction = describe_instruction(block.program(), fragment.waiting_position());
      }
      if (group.threads == 0 || group.last_block != block.linear_index()) ++group.blocks;
      group.last_block = block.linear_index();
      group.threads += static_cast<unsigned>(std::popcount(fragment.lanes));
    }
  }
}

Finding WaitReport::finding(const std::string& what) const {
  constexpr const char* kNames[] = {"for memory to change", "for a phase to complete", "for lanes of their warp",
                                    "at a barrier"};
  Finding finding;
  std::string text = what;
  std::size_t named = 0;
  for (const auto& [key, group] : groups_) {
    if (++named > kMostGroups) {
      text += joined("\n   waiting at ", groups_.size() - kMostGroups, " more instructions: other threads");
      break;
    }
    const std::string waiting = joined("\n   waiting ", kNames[static_cast<std::size_t>(key.first)], ": ",
                                       count_of(group.threads, "thread"), " of ", count_of(group.blocks, "block"));
    if (named == 1) {
      finding = group.first;
      text += finding.text + waiting;
    } else {
      text += waiting + ", " + group.instruction;
    }
  }
  finding.text = std::move(text);
  return finding;
}

}  // namespace gradring::simulated_gpu
