// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "kernels/simulated_gpu/machine/program.h"
#include "kernels/simulated_gpu/memory/access_clocks.h"
#include "kernels/simulated_gpu/units/mma_types.h"
#include "kernels/simulated_gpu/units/wgmma.h"

namespace gradring::simulated_gpu {

class Block;
class Warp;

/// Details of wgmma.mma_async. Operation::slots are those of the accumulators, then those of A's fragment, if it is
/// in registers; a and b are the rows of the descriptors, c the predicate scale-d.
struct WarpgroupProduct {
  Half type = Half::f16;  ///< of a and b, if these are f16 or bf16
  Element a = Element::f16, b = Element::f16;
  SumType sum = SumType::f32;
  bool saturates = false;  ///< .satfinite, of s32
  int columns = 0;
  Major major_a = Major::k, major_b = Major::k;
  bool negates_a = false, negates_b = false;
  bool reads_a_from_registers = false;

  bool has_half_operands() const { return bits_of(a) == 16; }
  int k() const { return 256 / bits_of(a); }
  std::size_t accumulators() const { return static_cast<std::size_t>(columns) / (sum == SumType::f16 ? 4 : 2); }
};

/// The products (wgmma) of a block's warpgroups, four warps each, that are under way, in groups of each warp. They
/// read shared memory and add to their accumulators as late as they can: when a warp waits for their group. That
/// happens for the four warps at once, as all of them take part in a product.
class Warpgroups {
 public:
  explicit Warpgroups(Block& block) : block_(block) {}

  static constexpr unsigned kWarps = 4;

  void begin_block(unsigned warps) {
    if (warps == warps_.size() && !std::exchange(is_used_, false)) return;
    warps_.assign(warps, {});
    groups_.assign((warps + kWarps - 1) / kWarps, {});
  }
  /// wgmma.fence: registers that other instructions touched may be accumulators from now on.
  void fence(unsigned warp) { is_used_ = warps_[warp].is_fenced = true; }
  void start(const Operation& operation, Warp& warp);
  void commit(unsigned warp);
  /// Whether all but the newest `pending` groups of the warp have landed; false while another warp of its warpgroup
  /// has not committed them yet.
  bool wait(Warp& warp, std::uint64_t pending);
  /// An instruction other than wgmma accesses a row of an accumulator.
  ///
  /// Errors    Fault if a product is under way that adds to it.
  void touch(const Operation& operation, Warp& warp, Mask active);
  /// Errors    Fault if a product is under way at the end of the block.
  void end_block();

 private:
  struct Product {
    const Operation* operation = nullptr;
    std::uint64_t a = 0, b = 0;  ///< descriptors
    bool keeps = false;
    AccessClocks::Knowledge knowledge;
  };
  using Group = std::vector<Product>;
  struct WarpState {
    bool is_fenced = false;
    Group open;
    std::deque<Group> groups;  ///< committed, not landed
    std::uint64_t committed = 0;
  };
  struct GroupState {
    std::uint64_t landed = 0;
    AccessClocks::Released done{};
  };

  void land(unsigned warpgroup);
  void land_product(unsigned first_warp, unsigned warps, std::array<const Product*, kWarps> products, Stamp stamp);
  /// The rows of one warp of A, in left_, or of types that have no halves the columns from k0 on.
  void read_left(const Product& product, Warp& warp, unsigned index, const AccessClocks::Knowledge& knowledge,
                 Stamp stamp, int k0);
  /// D = A B + D of one warp, of what left_ and right_ hold.
  void multiply(const Product& product, Warp& warp, int inner, bool keeps);
  void multiply_integers(const Product& product, Warp& warp, unsigned index, const AccessClocks::Knowledge& knowledge,
                         Stamp stamp);
  void read_shared(const Product& product, Warp& warp, const AccessClocks::Knowledge& knowledge, Stamp stamp,
                   Major major, std::uint64_t descriptor, int first, int extent);
  unsigned warps_of(unsigned warpgroup) const {
    return std::min<unsigned>(kWarps, static_cast<unsigned>(warps_.size()) - warpgroup * kWarps);
  }

  Block& block_;
  bool is_used_ = false;  ///< by the block
  std::vector<WarpState> warps_;
  std::vector<GroupState> groups_;
  std::vector<std::uint32_t> addresses_;
  std::vector<Chunk> chunks_;
  std::vector<Chunk> right_bytes_;
  LeftMatrix left_;
  RightMatrix right_;
};

}  // namespace gradring::simulated_gpu
