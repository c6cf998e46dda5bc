// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/lib/variant.h"
#include "kernels/ops/kernel_set.h"
#include "kernels/ops/peers.h"
#include "kernels/runtime/device.h"
#include "kernels/runtime/dtype.h"

namespace gradring::kernels::bench {

inline constexpr std::int64_t kSeedParameters = 431'242;  ///< of the seed ConvNet

/// Where an argument points: the reference computes on the host, the variants on the device.
enum class Side : std::uint8_t { host, device };

/// An argument of a kernel, once for each side; reset() restores its first values.
class BenchArray {
 public:
  /// `memory`: whose device memory it shares, if it fits there; null: it has its own.
  ///
  /// Errors    DeviceError if there is no memory.
  BenchArray(Device& device, DType dtype, std::span<const double> start, const BenchArray* memory = nullptr);

  /// Restores the first values, on both sides; blocks. `moved`: of random inputs, by so many elements, in a circle.
  void reset(Stream& stream, std::size_t moved = 0);
  /// The current values; blocks.
  std::vector<double> values(Side side, Stream& stream) const;
  /// The device's bytes; blocks.
  std::vector<std::byte> device_bytes(Stream& stream) const { return device_bytes(stream, 0, bytes()); }
  /// Those of the memory that it shares, behind its own.
  std::vector<std::byte> bytes_behind(Stream& stream) const { return device_bytes(stream, bytes(), room_ - bytes()); }

  void* at(Side side) const { return side == Side::host ? host_.data() : device_data_; }
  template <class T>
  T* as(Side side) const {
    return static_cast<T*>(at(side));
  }
  /// The device's, of an array in f32.
  float* floats() const { return as<float>(Side::device); }
  std::size_t elements() const { return elements_; }
  std::size_t bytes() const { return elements_ * element_bytes(); }
  std::size_t element_bytes() const { return size_of(dtype_); }

  bool is_workspace = false;  ///< a call must not depend on what is in it
  bool is_random = false;     ///< an input whose elements may change places

 private:
  std::vector<std::byte> device_bytes(Stream& stream, std::size_t first, std::size_t count) const;

  DType dtype_;
  std::size_t elements_;
  Buffer start_;
  Buffer host_;
  Buffer device_;  // empty where the memory is another's
  std::byte* device_data_;
  std::size_t room_;  // bytes from there on
};

/// What a case is made for.
enum class Trial : std::uint8_t {
  none,  ///< the given values and extents: compared, and timed
  tail,  ///< fewer samples in the memory of more, as the last batch of an epoch has
  /// The same, with NaN and infinities among the inputs. Where the reference is not finite, a result must not be, either:
  /// equal to it where the contract is exact.
  non_finite,
};

/// The allowed error of an element, given the reference's value.
using Bound = std::function<double(double expected)>;

/// One pass of one operation on one shape, ready to run: its implementations, cost and error bounds.
struct KernelCase {
  std::string name;   ///< "relu backward"
  std::string shape;  ///< "elements=1384448"
  DType dtype = DType::f32;
  double bytes = 0;            ///< read and written by one call, by the operation's contract
  double unread_bytes = 0;     ///< of these, written without having been read
  double flops = 0;            ///< floating-point operations of one call, by the same; 0 where they do not matter
  DType factors = DType::f32;  ///< of the products among them: 16 bits may go to tensor cores

  struct Output {
    std::string name;  ///< that of the contract's argument
    const BenchArray* array = nullptr;
    Bound bound;
    bool is_of_peers = true;      ///< libraries write it, too
    bool spreads = false;         ///< more of it may be non-finite than the reference's
    bool is_overwritten = false;  ///< unread: calls one after another leave what one leaves
  };
  std::vector<std::unique_ptr<BenchArray>> arrays{};  ///< all arrays of the call
  std::vector<Output> outputs{};                      ///< those that it writes

  using Candidate = NamedCall;
  std::function<void()> reference{};  ///< on the host side
  std::vector<Candidate> variants{};  ///< on the device side: those of the table that are chosen here
  /// On the device side: those that are right here, too, but made for GPUs. A CPU emulates them, so their times mean
  /// nothing.
  std::vector<Candidate> emulated{};
  std::vector<std::string> unsupported{};  ///< the others of the table: not for this type, or not for this device
  std::vector<Candidate> peers{};          ///< on the device side: libraries that do the same
  std::function<void()> plain_loop{};      ///< on the device side, CPU only: the obvious loop; or empty

  bool may_move = true;  ///< inputs do not depend on each other: their elements may change places

  Trial trial = Trial::none;
  /// The same operation on other values, in the memory of this case: compared after it, and never timed.
  std::vector<KernelCase> trials{};
};

/// Extents that the user gave instead of the defaults: "batch" -> 512.
using Extents = std::map<std::string, std::int64_t, std::less<>>;

/// Builds the cases of cases/.
class CaseMaker {
 public:
  struct World {
    const KernelSet& kernels;
    Device& device;
    Stream& stream;
    DType dtype = DType::f32;  ///< of activations and weights
    Extents extents{};
    PeerMaker* peers = nullptr;  ///< may be null
    Trial trial = Trial::none;
    const std::vector<KernelCase>* memory = nullptr;  ///< of a trial: the cases whose memory its cases share, in order
  };
  explicit CaseMaker(World world) : world_(std::move(world)) {}

  /// The maker of trials of these cases.
  CaseMaker of_trial(Trial trial, const std::vector<KernelCase>& memory) const;

  const KernelSet& kernels() const { return world_.kernels; }
  DType dtype() const { return world_.dtype; }

  /// The extent of that name, given or default; it becomes part of the next case's shape.
  std::int64_t extent(const std::string& name, std::int64_t by_default);
  /// A case with the extents named since the last one.
  KernelCase make(const std::string& name);

  /// Adds an array of numbers in [low, high), the same in every run; of multiples of `step`, which is 1 for an integer
  /// type. 0: of any.
  BenchArray& input(KernelCase& to, DType dtype, std::int64_t elements, double low = -1, double high = 1,
                    double step = 0);
  /// The same, but finite in every trial: for what the contract says nothing about, or where variants differ.
  BenchArray& finite_input(KernelCase& to, DType dtype, std::int64_t elements, double low = -1, double high = 1,
                           double step = 0);
  /// Adds an array of these values.
  BenchArray& array(KernelCase& to, DType dtype, std::span<const double> values) {
    to.may_move = false;  // others may depend on them
    return add(to, dtype, values);
  }
  /// Adds an array that the operation overwrites; before, it holds values that no result has.
  BenchArray& output(KernelCase& to, const std::string& name, DType dtype, std::int64_t elements, Bound bound);
  /// Adds a result that the operation overwrites or, if `accumulate`, adds to.
  BenchArray& sum(KernelCase& to, const std::string& name, DType dtype, std::int64_t elements, Bound bound,
                  bool accumulate);
  /// Adds memory that is no result.
  BenchArray& workspace(KernelCase& to, std::size_t bytes);
  /// Adds one object by its bytes, such as a StepState.
  template <class T>
  BenchArray& object(KernelCase& to, const T& value) {
    return bytes(to, std::as_bytes(std::span(&value, 1)));
  }
  /// An input that the operation changes: its values are a result, too.
  static void also_output(KernelCase& of, const std::string& name, const BenchArray& array, Bound bound) {
    of.outputs.push_back({name, &array, std::move(bound)});
  }

  /// Adds the reference, the variants of a table, and the peer of a library, if it has one.
  /// `pass` is the pass of a variant, `args_of` makes its arguments of the arrays of one side.
  ///
  /// Returns   the device's arguments.
  template <class Variant, class Args, class ArgsOf>
  Args run(KernelCase& to, std::span<const Variant> table, void (*Variant::*pass)(Stream&, const Args&),
           void (*reference)(const Args&), const ArgsOf& args_of) const {
    to.reference = [reference, args = args_of(Side::host)] { reference(args); };
    const Args args = args_of(Side::device);
    for (const Variant& variant : table) {
      const std::string name(variant.name);
      if (!can_run(variant, world_.device, dtype())) {
        to.unsupported.push_back(name);
        continue;
      }
      const bool is_chosen_here = variant.supports(world_.device, dtype());
      (is_chosen_here ? to.variants : to.emulated).push_back({name, [run = variant.*pass, args](Stream& stream) {
                                                                run(stream, args);
                                                              }});
    }
    if constexpr (requires(PeerMaker& peers) { peers.peer(args); })
      if (world_.peers)
        if (auto peer = world_.peers->peer(args)) to.peers.push_back(std::move(*peer));
    return args;
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
  std::size_t cases_ = 0;
};

/// Half a unit in the last place of what a type stores.
double rounding(DType dtype, double value);
/// Nothing may differ.
Bound exact();
/// So many roundings to the type, on top of `absolute`.
Bound roundings(DType dtype, double count, double absolute = 0);
/// A sum in f32 of `terms` products of numbers below 1, rounded to the type.
Bound sum_of_products(DType dtype, std::int64_t terms);

using Cases = std::vector<KernelCase>;

inline Cases only(KernelCase one) {
  Cases cases;
  cases.push_back(std::move(one));
  return cases;
}

/// What each of these functions makes, in their order.
template <class... CaseOf>
Cases cases_of(CaseMaker& make, CaseOf... case_of) {
  Cases cases;
  (cases.push_back(case_of(make)), ...);
  return cases;
}

/// What `case_of` makes with each of these values, in their order.
template <class Value, class CaseOf>
Cases cases_with(CaseMaker& make, const std::vector<Value>& values, CaseOf case_of) {
  Cases cases;
  for (const Value value : values) cases.push_back(case_of(make, value));
  return cases;
}

/// The cases of each operation: by default those of the seed ConvNet at batch 64, in f32.
Cases accumulate_cases(CaseMaker& make);
Cases adam_cases(CaseMaker& make);
Cases avg_pool2d_cases(CaseMaker& make);
Cases batch_norm_cases(CaseMaker& make);
Cases bias_cases(CaseMaker& make);
Cases cast_cases(CaseMaker& make);
Cases conv2d_cases(CaseMaker& make);
Cases conv_relu_pool_cases(CaseMaker& make);
Cases dropout_cases(CaseMaker& make);
Cases ema_cases(CaseMaker& make);
Cases exact_sum_cases(CaseMaker& make);
Cases fill_cases(CaseMaker& make);
Cases gather_batch_cases(CaseMaker& make);
Cases gelu_cases(CaseMaker& make);
Cases gemm_cases(CaseMaker& make);
Cases gradient_statistics_cases(CaseMaker& make);
Cases grouped_conv2d_cases(CaseMaker& make);
Cases linear_cross_entropy_cases(CaseMaker& make);
Cases max_pool2d_cases(CaseMaker& make);
Cases muon_cases(CaseMaker& make);
Cases peak_cases(CaseMaker& make);
Cases relu_cases(CaseMaker& make);
Cases scale_cases(CaseMaker& make);
Cases sgd_cases(CaseMaker& make);
Cases silu_cases(CaseMaker& make);
Cases softmax_cross_entropy_cases(CaseMaker& make);
Cases step_state_cases(CaseMaker& make);
Cases tally_cases(CaseMaker& make);

struct CaseFamily {
  std::string_view operation;  ///< as its namespace is named
  Cases (*cases)(CaseMaker&);
};

/// One entry an operation, in the order in which kernels/README.md has them.
std::span<const CaseFamily> case_families();

/// The cases of a family, each with its trials.
Cases cases_with_trials(const CaseFamily& family, CaseMaker& make);

}  // namespace gradring::kernels::bench
