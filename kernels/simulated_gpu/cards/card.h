// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace gradring::simulated_gpu {

/// A GPU, by a file of this folder or a user's own. README.md describes the files.
///
/// Source    limits of a multiprocessor and a block, by compute capability: CUDA Programming Guide 13.0, "Technical
///           specifications per compute capability". The rest: each file names its own. A real card reports about 1 %
///           less memory, which it keeps for itself.
struct Card {
  std::string name;       ///< "h100"; of a user's file, its path
  std::string full_name;  ///< as the driver names the real one
  int major = 0;
  int minor = 0;
  int multiprocessors = 0;
  std::size_t memory_bytes = 0;
  int l2_bytes = 0;
  int bus_bits = 0;
  double clock_hertz = 0;             ///< the highest: a bound holds at any other
  double bytes_per_second = 0;        ///< of its memory
  double host_bytes_per_second = 0;   ///< of PCI Express with 16 lanes, in one direction
  double tensor_flops_per_cycle = 0;  ///< of a multiprocessor, with factors of 16 bits and without sparsity

  int threads_per_multiprocessor = 0;
  int blocks_per_multiprocessor = 0;
  int shared_bytes_per_multiprocessor = 0;
  int shared_bytes_per_block = 0;          ///< that a kernel may have if it asks for more than 48 KB
  std::size_t reserved_shared_bytes = 0;   ///< of each block, by CUDA
  std::size_t shared_allocation_unit = 0;  ///< in which shared memory is given to a block

  int compute_capability() const { return 10 * major + minor; }
};

/// Limits that all cards here have in common.
inline constexpr unsigned kMostThreadsPerBlock = 1024;
inline constexpr unsigned kMostBlockExtents[3] = {1024, 1024, 64};
inline constexpr unsigned kMostGridExtents[3] = {0x7fffffff, 65535, 65535};
inline constexpr int kRegisters = 65536;                        ///< of a multiprocessor, and of a block
inline constexpr std::size_t kSharedWithoutAsking = 48 * 1024;  ///< of a block, static and dynamic together
inline constexpr int kWarpThreads = 32;
inline constexpr int kSchedulers = 4;  ///< of a multiprocessor; each issues an instruction of a warp in a cycle

/// Those of this folder, by compute capability.
const std::vector<Card>& cards();
/// "t4, rtx3090, ..."
std::string card_names();
/// One of cards(); null for an unknown name.
const Card* find_card(std::string_view name);

/// Whether it is a user's file: it ends in .card, or has a slash.
bool is_card_file(std::string_view name_or_file);
/// Of a name, or of a user's file.
///
/// Errors    InvalidArgument: an unknown name, with those that are known; a file that cannot be read, or describes no
///           card, with its line.
Card card_of(const std::string& name_or_file);
/// The card that a text describes. `file`: where it is from, for messages; the card's name.
///
/// Errors    InvalidArgument: the line, what it says, and what is expected.
Card parse_card(const std::string& file, const std::string& text);

/// The files of this folder.
namespace card_text {
extern const char* const t4;
extern const char* const rtx3090;
extern const char* const rtx4090;
extern const char* const a100;
extern const char* const h100;
extern const char* const h200;
}  // namespace card_text

}  // namespace gradring::simulated_gpu
