// SPDX-License-Identifier: Apache-2.0
// gemm: the three products of the first linear layer.
#include <algorithm>

#include "kernels/bench/case_families.h"

namespace gradring::kernels::bench {
namespace {

KernelCase product(CaseMaker& make, const std::string& name, const gemm::Args& problem) {
  KernelCase c = make.make(name);
  BenchArray& a = make.input(c, problem.dtype, problem.m * problem.k);
  BenchArray& b = make.input(c, problem.dtype, problem.k * problem.n);
  BenchArray& out = make.output(c, problem.c_dtype, problem.m * problem.n, sum_of_products(problem.c_dtype, problem.k));
  std::size_t bytes = 0;
  for (const gemm::Variant& variant : make.kernels().gemm) bytes = std::max(bytes, variant.workspace_bytes);
  BenchArray& scratch = make.workspace(c, bytes);
  const auto args = [&a, &b, &out, &scratch, problem](Side side) {
    gemm::Args filled = problem;
    filled.a = a.at(side);
    filled.b = b.at(side);
    filled.c = out.at(side);
    filled.workspace = scratch.at(side);
    return filled;
  };
  c.bytes = static_cast<double>(a.bytes() + b.bytes() + out.bytes());
  c.flops = 2.0 * static_cast<double>(problem.m) * static_cast<double>(problem.n) * static_cast<double>(problem.k);
  c.factors = problem.dtype;
  c.reference = [=] { gemm::reference::run(args(Side::host)); };
  make.variants(c, make.kernels().gemm, problem.dtype,
                [=](const gemm::Variant& variant, Stream& stream) { variant.run(stream, args(Side::device)); });
  make.peer(c, args(Side::device));
  return c;
}

struct Layer {
  std::int64_t batch, in, out;
};

Layer layer_of(CaseMaker& make) { return {make.extent("batch", 64), make.extent("in", 1600), make.extent("out", 256)}; }

}  // namespace

Cases gemm_cases(CaseMaker& make) {
  const DType dtype = make.dtype();
  Cases cases;
  Layer l = layer_of(make);
  cases.push_back(
      product(make, "gemm y = x w^T",
              {.dtype = dtype, .c_dtype = dtype, .m = l.batch, .n = l.out, .k = l.in, .transpose_b = true}));
  l = layer_of(make);
  cases.push_back(
      product(make, "gemm dx = dy w", {.dtype = dtype, .c_dtype = dtype, .m = l.batch, .n = l.in, .k = l.out}));
  l = layer_of(make);
  cases.push_back(
      product(make, "gemm dw = dy^T x",
              {.dtype = dtype, .c_dtype = DType::f32, .m = l.out, .n = l.in, .k = l.batch, .transpose_a = true}));
  return cases;
}

}  // namespace gradring::kernels::bench
