// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/machine/operations/span.h"

#include <algorithm>
#include <array>
#include <bit>

#include "kernels/lib/level_copies.h"

namespace gradring::simulated_gpu {

GRADRING_DECLARE_COPIES(SpanOf, span_loop);  // span_loop.cpp

namespace {

constexpr unsigned kSectorBytes = Counters::kSectorBytes;
constexpr unsigned kBanks = 32;
constexpr unsigned kBankBytes = 4;

std::uint64_t distinct_sectors(Mask active, unsigned bytes, const Addresses& addresses) {
  std::array<std::uint64_t, 2 * kWarpSize> sectors;
  std::size_t count = 0;
  bool is_sorted = true;
  const auto add = [&](std::uint64_t sector) {
    if (count > 0 && sectors[count - 1] == sector) return;
    is_sorted &= count == 0 || sectors[count - 1] < sector;
    sectors[count++] = sector;
  };
  for_each_lane(active, [&](unsigned lane) {
    add(addresses.lane[lane] / kSectorBytes);
    add((addresses.lane[lane] + bytes - 1) / kSectorBytes);
  });
  if (is_sorted) return count;
  const auto end = sectors.begin() + static_cast<std::ptrdiff_t>(count);
  std::sort(sectors.begin(), end);
  return static_cast<std::uint64_t>(std::unique(sectors.begin(), end) - sectors.begin());
}

/// What a lane wants of shared memory. Accesses are aligned: the neighbouring banks that serve up to 16 bytes of one
/// are taken as one bank.
struct Banks {
  explicit Banks(unsigned bytes)
      : shift(static_cast<unsigned>(std::countr_zero(std::clamp(bytes, kBankBytes, 4 * kBankBytes)))),
        last((kBanks * kBankBytes >> shift) - 1),
        of_a_lane(std::max(bytes >> shift, 1u)) {}

  unsigned shift;      ///< of an address to the number of its vector
  unsigned last;       ///< index of the last bank
  unsigned of_a_lane;  ///< vectors of a lane, above 1 for more than 16 bytes
};

/// Calls visit(vector, bank) for what the lanes want; neighbouring lanes often want the same.
template <class Visit>
void for_each_vector(Mask lanes, const Banks& banks, const Addresses& addresses, const Visit& visit) {
  std::uint32_t before = ~std::uint32_t{0};
  for_each_lane(lanes, [&](unsigned lane) {
    const auto first = static_cast<std::uint32_t>(addresses.lane[lane] >> banks.shift);
    if (first == before) return;
    before = first;
    for (unsigned i = 0; i < banks.of_a_lane; ++i) visit(first + i, (first + i) & banks.last);
  });
}

/// Whether the lanes want at most one word of each bank.
bool is_free_of_conflicts(Mask lanes, const Banks& banks, const Addresses& addresses) {
  std::array<std::uint32_t, kBanks> vector_of;
  std::uint32_t used = 0;
  bool is_free = true;
  for_each_vector(lanes, banks, addresses, [&](std::uint32_t vector, unsigned bank) {
    is_free &= (used >> bank & 1) == 0 || vector_of[bank] == vector;
    used |= std::uint32_t{1} << bank;
    vector_of[bank] = vector;
  });
  return is_free;
}

/// The most words that the lanes want of one bank.
unsigned wavefronts_of(Mask lanes, unsigned bytes, const Addresses& addresses) {
  const Banks banks(bytes);
  if (is_free_of_conflicts(lanes, banks, addresses)) return 1;
  std::array<std::array<std::uint32_t, kBanks>, kBanks> vectors;
  std::array<unsigned, kBanks> count{};
  unsigned most = 0;
  for_each_vector(lanes, banks, addresses, [&](std::uint32_t vector, unsigned bank) {
    const auto end = vectors[bank].begin() + count[bank];
    if (std::find(vectors[bank].begin(), end, vector) == end) vectors[bank][count[bank]++] = vector;
    most = std::max(most, count[bank]);
  });
  return most;
}

/// Of the units of a power of two, those that the addresses of these lanes are in.
std::uint64_t touched_units(Mask lanes, std::uint64_t unit, unsigned bytes, const Addresses& addresses) {
  std::array<std::uint64_t, 2 * kWarpSize> units;
  auto end = units.begin();
  for_each_lane(lanes, [&](unsigned lane) {
    *end++ = addresses.lane[lane] / unit;
    *end++ = (addresses.lane[lane] + bytes - 1) / unit;
  });
  std::sort(units.begin(), end);
  return static_cast<std::uint64_t>(std::unique(units.begin(), end) - units.begin());
}

bool are_in_neighbouring_lines(Mask lanes, const Addresses& addresses) {
  constexpr unsigned kLineBytes = kBanks * kBankBytes;
  std::uint64_t first = ~std::uint64_t{0};
  std::uint64_t last = 0;
  for_each_lane(lanes, [&](unsigned lane) {
    first = std::min(first, addresses.lane[lane] / kLineBytes);
    last = std::max(last, addresses.lane[lane] / kLineBytes);
  });
  return last - first <= 1;
}

}  // namespace

Span span_of(const Addresses& addresses, unsigned bytes) {
  static const SpanOf loop = GRADRING_COPY_TO_RUN(span_loop)();
  return loop(addresses, bytes);
}

void count_sectors(Counters::Instruction& counters, Mask active, unsigned bytes, const Addresses& addresses,
                   const Span& span) {
  const std::uint64_t asked = std::uint64_t{bytes} * static_cast<unsigned>(std::popcount(active));
  const std::uint64_t spanned = (span.last + bytes - 1) / kSectorBytes - span.first / kSectorBytes + 1;
  std::uint64_t sectors = spanned;
  if (spanned > 2 && !span.is_consecutive) {
    if (spanned <= 64) {
      std::uint64_t touched = 0;
      for_each_lane(active, [&](unsigned lane) {
        touched |= std::uint64_t{1} << (addresses.lane[lane] / kSectorBytes - span.first / kSectorBytes);
      });
      sectors = static_cast<std::uint64_t>(std::popcount(touched));
    } else {
      sectors = distinct_sectors(active, bytes, addresses);
    }
  }
  ++counters.requests;
  counters.bytes += asked;
  counters.sectors += sectors;
  counters.least_sectors += std::min(sectors, (asked + kSectorBytes - 1) / kSectorBytes);
}

void count_wavefronts(Counters::Instruction& counters, Mask active, unsigned bytes, const Addresses& addresses,
                      const Span& span) {
  const bool is_free =  // neighbouring words are in different banks
      span.is_consecutive || (span.last + bytes - 1) / kBankBytes - span.first / kBankBytes < kBanks;
  const unsigned lanes_together = bytes <= 4 ? kWarpSize : bytes == 8 ? kWarpSize / 2 : kWarpSize / 4;
  const Mask first_group = lanes_together == kWarpSize ? kAllLanes : (Mask{1} << lanes_together) - 1;
  unsigned groups = 0;
  unsigned wavefronts = 0;
  for (unsigned lane = 0; lane < kWarpSize; lane += lanes_together) {
    const Mask lanes = active & (first_group << lane);
    if (lanes == 0) continue;
    ++groups;
    wavefronts += is_free ? 1 : wavefronts_of(lanes, bytes, addresses);
  }
  ++counters.shared_requests;
  counters.wavefronts += wavefronts;
  counters.least_wavefronts += groups;
}

void correct_for_copy(Counters::Instruction& counters, Mask active, Mask reading, const Addresses& to,
                      std::uint64_t sectors) {
  constexpr unsigned kBytes = 16;
  constexpr unsigned kLanesTogether = kWarpSize / 4;
  constexpr Mask kQuarter = (Mask{1} << kLanesTogether) - 1;
  std::uint64_t written = 0;
  for (unsigned lane = 0; lane < kWarpSize; lane += kLanesTogether) {
    const Mask lanes = active & (kQuarter << lane);
    if (lanes == 0) continue;
    if (const Mask own = reading & lanes; own != 0) written += touched_units(own, kSectorBytes, kBytes, to);
    if (are_in_neighbouring_lines(lanes, to)) counters.wavefronts -= wavefronts_of(lanes, kBytes, to) - 1;
  }
  if (written > sectors) counters.sectors += written - sectors;
}

}  // namespace gradring::simulated_gpu
