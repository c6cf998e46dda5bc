// SPDX-License-Identifier: Apache-2.0
// A kernel with the functions that it calls: which they are, where their code is, and which of them are recursive.
#include <algorithm>
#include <deque>
#include <iterator>
#include <utility>

#include "kernels/simulated_gpu/ptx/kernel_reader.h"

namespace gradring::ptx {
namespace {

/// An instruction that the text does not have: a function that comes to its end returns.
Instruction implicit_return() {
  return {.guard = {}, .opcode = "ret", .words = {"ret"}, .operands = {}, .text = "}", .source = {}, .called_from = {}};
}

void move_labels(std::vector<Operand>& operands, std::size_t begin) {
  for (Operand& operand : operands) {
    move_labels(operand.parts, begin);
    if (operand.kind == Operand::Kind::label) operand.target += begin;
  }
}

class FunctionGraph {
 public:
  explicit FunctionGraph(std::vector<Body> bodies) : bodies_(std::move(bodies)), states_(bodies_.size()) {}

  /// Functions that are called before those that call them, as far as there is such an order.
  std::vector<std::size_t> callees_first() {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < bodies_.size(); ++i) visit(i, order);
    return order;
  }

  bool reaches(std::size_t from, std::size_t to) const {
    std::vector<bool> seen(bodies_.size());
    std::deque<std::size_t> next = {from};
    while (!next.empty()) {
      const std::size_t function = next.front();
      next.pop_front();
      for (const std::size_t callee : bodies_[function].callees) {
        if (callee == to) return true;
        if (!seen[callee]) next.push_back(callee);
        seen[callee] = true;
      }
    }
    return false;
  }

  Body& body(std::size_t function) { return bodies_[function]; }

 private:
  void visit(std::size_t first, std::vector<std::size_t>& order) {
    if (states_[first]) return;
    states_[first] = true;
    struct Visited {
      std::size_t function, next_callee;
    };
    std::vector<Visited> path = {{first, 0}};
    while (!path.empty()) {
      auto& [function, next] = path.back();
      if (next == bodies_[function].callees.size()) {
        order.push_back(function);
        path.pop_back();
      } else if (const std::size_t callee = bodies_[function].callees[next++]; !states_[callee]) {
        states_[callee] = true;
        path.push_back({callee, 0});
      }
    }
  }

  std::vector<Body> bodies_;
  std::vector<bool> states_;  ///< whether a function was visited
};

void append(Kernel& kernel, std::vector<Instruction> code) {
  const std::size_t begin = kernel.code.size();
  for (Instruction& instruction : code) move_labels(instruction.operands, begin);
  std::ranges::move(code, std::back_inserter(kernel.code));
}

}  // namespace

Kernel read_kernel(std::string_view module, std::size_t begin, std::size_t end, const ModuleVariables& variables) {
  Kernel kernel;
  KernelVariables names(variables, kernel);
  Body own = read_kernel_body(module, begin, end, kernel, names);
  std::vector<Body> bodies;
  const auto add_initial_functions = [&](const Body& body) {
    if (body.calls_indirectly)
      for (const std::string_view name : variables.initial_functions) names.function_named(name);
  };
  add_initial_functions(own);
  while (bodies.size() < kernel.functions.size()) {
    const std::size_t i = bodies.size();
    const FunctionText& text = variables.functions.at(kernel.functions[i].name);
    Function function = kernel.functions[i];  // a copy: the list grows
    function.is_defined = text.is_defined;
    Body& body = bodies.emplace_back(read_function_body(module, text, kernel, names, function));
    if (function.is_defined) body.code.push_back(implicit_return());
    kernel.functions[i] = std::move(function);
    add_initial_functions(body);
  }
  // An indirect call may call any function whose address the kernel or a variable has.
  for (Body& body : bodies)
    for (std::size_t i = 0; body.calls_indirectly && i < bodies.size(); ++i) body.callees.push_back(i);
  names.finish();
  FunctionGraph graph(std::move(bodies));
  for (const std::size_t i : graph.callees_first()) {
    Function& function = kernel.functions[i];
    function.is_recursive = graph.reaches(i, i);
    function.begin = kernel.code.size();
    append(kernel, std::move(graph.body(i).code));
    function.end = kernel.code.size();
  }
  kernel.entry = kernel.code.size();
  append(kernel, std::move(own.code));
  return kernel;
}

}  // namespace gradring::ptx
