// SPDX-License-Identifier: Apache-2.0
// Graphs that are built node by node.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "kernels/simulated_gpu/cudart/copies.h"
#include "kernels/simulated_gpu/cudart/kernel_launch.h"
#include "kernels/simulated_gpu/cudart/runtime.h"

using namespace gradring::simulated_gpu;

namespace {

/// Of a node that only joins others.
constexpr const char* kEmptyNode = "empty node";

GraphNode& node_at(Call& call, cudaGraphNode_t node) { return call.rt.graph_nodes.at(node); }

std::size_t index_in(Call& call, cudaGraph_t graph, cudaGraphNode_t node) {
  const GraphNode& found = node_at(call, node);
  if (found.graph != graph) throw Misuse{cudaErrorInvalidValue, "a node of another graph"};
  return found.index;
}

cudaGraphNode_t handle_of(Call& call, cudaGraph_t handle, std::size_t index) {
  Graph& graph = call.rt.graphs.at(handle);
  while (graph.handles.size() <= index)
    graph.handles.push_back(call.rt.graph_nodes.add({.graph = handle, .index = graph.handles.size()}));
  return graph.handles[index];
}

/// Adds a node. `make(graph)` returns its work.
template <class Make>
cudaError_t added(const char* name, cudaGraphNode_t* node, cudaGraph_t handle, const cudaGraphNode_t* after,
                  std::size_t count, const Make& make, std::shared_ptr<const Recipe> child = nullptr) {
  return call(name, [&](Call& call) {
    Graph& graph = call.rt.graphs.at(handle);
    Device& device = call.on(graph.recipe.device);
    Recipe::Node made{.child = std::move(child)};
    if (!made.child) made.work = device.guarded(make(call.rt, device));
    for (const cudaGraphNode_t other : std::span(after, count)) made.after.push_back(index_in(call, handle, other));
    graph.is_by_hand = true;
    graph.recipe.nodes.push_back(std::move(made));
    *node = handle_of(call, handle, graph.recipe.nodes.size() - 1);
  });
}

cudaGraphNodeType type_of(const Recipe::Node& node) {
  if (node.child) return cudaGraphNodeTypeGraph;
  switch (node.work.kind) {
    case CountedWork::Kind::kernel: return cudaGraphNodeTypeKernel;
    case CountedWork::Kind::copy: return cudaGraphNodeTypeMemcpy;
    case CountedWork::Kind::clear: return cudaGraphNodeTypeMemset;
    case CountedWork::Kind::host_function:
      return node.work.name == kEmptyNode ? cudaGraphNodeTypeEmpty : cudaGraphNodeTypeHost;
    case CountedWork::Kind::allocation: return cudaGraphNodeTypeMemAlloc;
  }
  return cudaGraphNodeTypeEmpty;
}

/// Errors    Misuse unless it is a node of this type.
void require_type(const Recipe::Node& node, cudaGraphNodeType type) {
  if (type_of(node) != type) throw Misuse{cudaErrorInvalidValue, "a node of another type"};
}

/// Gives a node of a graph, of this type, other work.
template <class Make>
cudaError_t changed(const char* name, cudaGraphNode_t node, cudaGraphNodeType type, const Make& make) {
  return call(name, [&](Call& call) {
    const GraphNode& found = node_at(call, node);
    Graph& graph = call.rt.graphs.at(found.graph);
    Device& device = call.on(graph.recipe.device);
    Recipe::Node& changed = graph.recipe.nodes[found.index];
    require_type(changed, type);
    changed.work = device.guarded(make(call.rt, device));
  });
}

/// The same of an executable graph, by the node of the graph that it was made of. Launches under way keep theirs.
template <class Make>
cudaError_t changed_in(const char* name, cudaGraphExec_t handle, cudaGraphNode_t node, cudaGraphNodeType type,
                       const Make& make) {
  return call(name, [&](Call& call) {
    GraphExecutable& executable = call.rt.executables.at(handle);
    Device& device = call.on(executable.recipe->device);
    const std::size_t index = index_in(call, executable.graph, node);
    if (index >= executable.positions.size())
      throw Misuse{cudaErrorInvalidValue, "a node that the graph did not have when it was instantiated"};
    auto recipe = std::make_shared<Recipe>(*executable.recipe);
    Recipe::Node& changed = recipe->nodes[executable.positions[index]];
    require_type(changed, type);
    changed.work = device.guarded(make(call.rt, device));
    executable.recipe = std::move(recipe);
  });
}

auto kernel_of(const cudaKernelNodeParams& parameters) {
  return [&parameters](Runtime& rt, const Device& device) {
    cudaLaunchConfig_t config{};
    config.gridDim = parameters.gridDim;
    config.blockDim = parameters.blockDim;
    config.dynamicSmemBytes = parameters.sharedMemBytes;
    if (parameters.extra) throw Misuse{cudaErrorNotSupported, "parameters of a kernel in `extra`"};
    return launch_work(rt, device, config, parameters.func, parameters.kernelParams);
  };
}

auto copy_of(const CopySpec& spec) {
  return [spec](Runtime& rt, const Device& device) { return copy_work(rt, spec, device.index()); };
}

auto copy_of(const char* name, const cudaMemcpy3DParms& parameters) {
  return [name, &parameters](Runtime& rt, const Device& device) {
    return copy_work(rt, copy_spec(name, parameters), device.index());
  };
}

auto clear_of(const cudaMemsetParams& parameters) {
  return [&parameters](Runtime& rt, const Device& device) {
    return clear_work(rt,
                      {.name = "cudaGraphAddMemsetNode",
                       .to = parameters.dst,
                       .pitch = {.row = parameters.pitch},
                       .shape = {parameters.width * parameters.elementSize, parameters.height},
                       .value = parameters.value,
                       .element_bytes = parameters.elementSize},
                      device.index());
  };
}

auto host_function_of(const cudaHostNodeParams& parameters) {
  return [&parameters](Runtime&, const Device&) {
    return host_function_work("cudaGraphAddHostNode", parameters.fn, parameters.userData);
  };
}

/// Writes up to *count nodes, or without `nodes` their number.
void give(Call& call, cudaGraph_t graph, const Frontier& indices, cudaGraphNode_t* nodes, std::size_t* count) {
  for (std::size_t i = 0; nodes && i < *count; ++i)
    nodes[i] = i < indices.size() ? handle_of(call, graph, indices[i]) : nullptr;
  *count = nodes ? std::min(*count, indices.size()) : indices.size();
}

/// Gives those nodes of a graph for which `holds(node)`.
template <class Holds>
cudaError_t given(const char* name, cudaGraph_t handle, cudaGraphNode_t* nodes, std::size_t* count,
                  const Holds& holds) {
  return call(name, [&](Call& call) {
    const Graph& graph = call.rt.graphs.at(handle);
    Frontier indices;
    for (std::size_t i = 0; i < graph.recipe.nodes.size(); ++i)
      if (holds(graph.recipe.nodes[i])) indices.push_back(i);
    give(call, handle, indices, nodes, count);
  });
}

}  // namespace

extern "C" {

/// Of the current device.
cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned) {
  return call("cudaGraphCreate", [&](Call& call) {
    *graph = call.rt.graphs.add({.recipe = {.device = call.on_current().index()}, .is_by_hand = true});
  });
}

cudaError_t cudaGraphClone(cudaGraph_t* clone, cudaGraph_t graph) {
  return call("cudaGraphClone", [&](Call& call) {
    Graph copy = call.rt.graphs.at(graph);
    copy.handles.clear();
    *clone = call.rt.graphs.add(std::move(copy));
  });
}

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                   std::size_t count, const cudaKernelNodeParams* parameters) {
  return added("cudaGraphAddKernelNode", node, graph, after, count, kernel_of(*parameters));
}

cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                   std::size_t count, const cudaMemcpy3DParms* parameters) {
  return added("cudaGraphAddMemcpyNode", node, graph, after, count, copy_of("cudaGraphAddMemcpyNode", *parameters));
}

cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                     std::size_t count, void* to, const void* from, std::size_t bytes,
                                     cudaMemcpyKind kind) {
  return added(
      "cudaGraphAddMemcpyNode1D", node, graph, after, count,
      copy_of({.name = "cudaGraphAddMemcpyNode1D", .to = to, .from = from, .shape = {.bytes = bytes}, .kind = kind}));
}

cudaError_t cudaGraphAddMemcpyNodeToSymbol(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                           std::size_t count, const void* symbol, const void* from, std::size_t bytes,
                                           std::size_t offset, cudaMemcpyKind kind) {
  void* to = nullptr;
  const cudaError_t found = cudaGetSymbolAddress(&to, symbol);
  if (found != cudaSuccess) return found;
  return cudaGraphAddMemcpyNode1D(node, graph, after, count, static_cast<char*>(to) + offset, from, bytes, kind);
}

cudaError_t cudaGraphAddMemcpyNodeFromSymbol(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                             std::size_t count, void* to, const void* symbol, std::size_t bytes,
                                             std::size_t offset, cudaMemcpyKind kind) {
  void* from = nullptr;
  const cudaError_t found = cudaGetSymbolAddress(&from, symbol);
  if (found != cudaSuccess) return found;
  return cudaGraphAddMemcpyNode1D(node, graph, after, count, to, static_cast<char*>(from) + offset, bytes, kind);
}

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                   std::size_t count, const cudaMemsetParams* parameters) {
  return added("cudaGraphAddMemsetNode", node, graph, after, count, clear_of(*parameters));
}

cudaError_t cudaGraphAddHostNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                 std::size_t count, const cudaHostNodeParams* parameters) {
  return added("cudaGraphAddHostNode", node, graph, after, count, host_function_of(*parameters));
}

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                  std::size_t count) {
  return added("cudaGraphAddEmptyNode", node, graph, after, count, [](Runtime&, const Device&) {
    return StreamWork{
        .run = [](CountedWork*) { return 0.0; }, .kind = CountedWork::Kind::host_function, .name = kEmptyNode};
  });
}

/// The graph as it is now.
cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                                       std::size_t count, cudaGraph_t child) {
  std::shared_ptr<const Recipe> recipe;
  const cudaError_t found = call("cudaGraphAddChildGraphNode", [&](Call& call) {
    recipe = std::make_shared<const Recipe>(call.rt.graphs.at(child).recipe);
  });
  if (found != cudaSuccess) return found;
  return added(
      "cudaGraphAddChildGraphNode", node, graph, after, count, [](Runtime&, const Device&) { return StreamWork{}; },
      std::move(recipe));
}

cudaError_t cudaGraphAddDependencies(cudaGraph_t handle, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                     const cudaGraphEdgeData*, std::size_t count) {
  return call("cudaGraphAddDependencies", [&](Call& call) {
    Graph& graph = call.rt.graphs.at(handle);
    for (std::size_t i = 0; i < count; ++i) {
      Frontier& after = graph.recipe.nodes[index_in(call, handle, to[i])].after;
      const std::size_t other = index_in(call, handle, from[i]);
      if (std::ranges::find(after, other) == after.end()) after.push_back(other);
    }
    graph.is_by_hand = true;
  });
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* count) {
  return given("cudaGraphGetNodes", graph, nodes, count, [](const Recipe::Node&) { return true; });
}

cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* count) {
  return given("cudaGraphGetRootNodes", graph, nodes, count,
               [](const Recipe::Node& node) { return node.after.empty(); });
}

cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* nodes, cudaGraphEdgeData*,
                                         std::size_t* count) {
  return call("cudaGraphNodeGetDependencies", [&](Call& call) {
    const GraphNode found = node_at(call, node);
    give(call, found.graph, call.rt.graphs.at(found.graph).recipe.nodes[found.index].after, nodes, count);
  });
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
  return call("cudaGraphNodeGetType", [&](Call& call) {
    const GraphNode& found = node_at(call, node);
    *type = type_of(call.rt.graphs.at(found.graph).recipe.nodes[found.index]);
  });
}

cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const cudaKernelNodeParams* parameters) {
  return changed("cudaGraphKernelNodeSetParams", node, cudaGraphNodeTypeKernel, kernel_of(*parameters));
}
cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node, const cudaMemcpy3DParms* parameters) {
  return changed("cudaGraphMemcpyNodeSetParams", node, cudaGraphNodeTypeMemcpy,
                 copy_of("cudaGraphMemcpyNodeSetParams", *parameters));
}
cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node, const cudaMemsetParams* parameters) {
  return changed("cudaGraphMemsetNodeSetParams", node, cudaGraphNodeTypeMemset, clear_of(*parameters));
}
cudaError_t cudaGraphHostNodeSetParams(cudaGraphNode_t node, const cudaHostNodeParams* parameters) {
  return changed("cudaGraphHostNodeSetParams", node, cudaGraphNodeTypeHost, host_function_of(*parameters));
}

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                             const cudaKernelNodeParams* parameters) {
  return changed_in("cudaGraphExecKernelNodeSetParams", executable, node, cudaGraphNodeTypeKernel,
                    kernel_of(*parameters));
}
cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                             const cudaMemcpy3DParms* parameters) {
  return changed_in("cudaGraphExecMemcpyNodeSetParams", executable, node, cudaGraphNodeTypeMemcpy,
                    copy_of("cudaGraphExecMemcpyNodeSetParams", *parameters));
}
cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t executable, cudaGraphNode_t node, void* to,
                                               const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  return changed_in("cudaGraphExecMemcpyNodeSetParams1D", executable, node, cudaGraphNodeTypeMemcpy,
                    copy_of({.name = "cudaGraphExecMemcpyNodeSetParams1D",
                             .to = to,
                             .from = from,
                             .shape = {.bytes = bytes},
                             .kind = kind}));
}
cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                             const cudaMemsetParams* parameters) {
  return changed_in("cudaGraphExecMemsetNodeSetParams", executable, node, cudaGraphNodeTypeMemset,
                    clear_of(*parameters));
}
cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                           const cudaHostNodeParams* parameters) {
  return changed_in("cudaGraphExecHostNodeSetParams", executable, node, cudaGraphNodeTypeHost,
                    host_function_of(*parameters));
}
}
