// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "kernels/bench/kernel_case.h"
#include "kernels/bench/peer_maker.h"
#include "kernels/kernel_set.h"

namespace gradring::kernels::bench {

/// Extents that a person names instead of the defaults: "batch" -> 512.
using Extents = std::map<std::string, std::int64_t, std::less<>>;

/// What the files of cases/ build their cases with.
class CaseMaker {
 public:
  struct World {
    const KernelSet& kernels;
    Device& device;
    Stream& stream;
    DType dtype = DType::f32;  ///< of activations and weights
    Extents extents{};
    PeerMaker* peers = nullptr;  ///< who knows libraries; may be nobody
  };
  explicit CaseMaker(World world) : world_(std::move(world)) {}

  const KernelSet& kernels() const { return world_.kernels; }
  DType dtype() const { return world_.dtype; }
  /// Bytes of one element of dtype().
  double element_bytes() const { return static_cast<double>(size_of(world_.dtype)); }

  /// The extent of that name, asked for or the default; the next case's shape names it.
  std::int64_t extent(const std::string& name, std::int64_t by_default);
  /// A case with the extents named since the last one.
  KernelCase make(const std::string& name);

  /// Adds an array of numbers in [low, high), the same in every run; of small integers for an integer type.
  BenchArray& input(KernelCase& to, DType dtype, std::int64_t elements, double low = -1, double high = 1);
  /// Adds an array of these values.
  BenchArray& array(KernelCase& to, DType dtype, std::span<const double> values) { return add(to, dtype, values); }
  /// Adds an array that the operation overwrites; before, it holds what no result is.
  BenchArray& output(KernelCase& to, DType dtype, std::int64_t elements, Bound bound);
  /// Adds memory that belongs to nobody's result.
  BenchArray& workspace(KernelCase& to, std::size_t bytes);
  /// Adds one object as it lies in memory, such as a StepState.
  template <class T>
  BenchArray& object(KernelCase& to, const T& value) {
    return bytes(to, std::as_bytes(std::span(&value, 1)));
  }
  /// An input that the operation changes: its values are a result, too.
  static void also_output(KernelCase& of, const BenchArray& array, Bound bound) {
    of.outputs.push_back({&array, std::move(bound)});
  }

  /// Adds those of a table that can run here; `run(variant, stream)` calls one of them.
  template <class Variant, class Run>
  void variants(KernelCase& to, std::span<const Variant> table, DType dtype, Run run) const {
    for (const Variant& variant : table)
      if (variant.supports(world_.device, dtype))
        to.variants.push_back({std::string(variant.name), [variant, run](Stream& stream) { run(variant, stream); }});
  }

  /// Adds what a library does about it; `args` point at the device's arrays.
  template <class Args>
  void peer(KernelCase& to, const Args& args) const {
    if (!world_.peers) return;
    if (auto made = world_.peers->peer(args)) to.peers.push_back(std::move(*made));
  }

  /// The plain loops are in f32, and read the device's memory on the host.
  bool has_plain_loops() const { return world_.device.id().kind == DeviceKind::cpu && dtype() == DType::f32; }
  Device& device() const { return world_.device; }
  bool is_given(std::string_view extent) const { return world_.extents.contains(extent); }
  /// Every name that extent() was called with.
  const std::set<std::string, std::less<>>& extent_names() const { return names_; }

 private:
  BenchArray& bytes(KernelCase& to, std::span<const std::byte> start);
  BenchArray& add(KernelCase& to, DType dtype, std::span<const double> start);

  World world_;
  std::set<std::string, std::less<>> names_;
  std::string shape_;  // of the case to come
  std::uint64_t arrays_ = 0;
};

/// Half a unit in the last place of what a type stores.
double rounding(DType dtype, double value);
/// Nothing may differ.
Bound exact();
/// So many roundings to the type, on top of `absolute`.
Bound roundings(DType dtype, double count, double absolute = 0);
/// A sum in f32 of `terms` products of numbers below 1, rounded to the type.
Bound sum_of_products(DType dtype, std::int64_t terms);

}  // namespace gradring::kernels::bench
