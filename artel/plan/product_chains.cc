#include "artel/plan/product_chains.h"

#include "artel/graph/op.h"

namespace artel::plan {
namespace {

double product_flops(int64_t rows, int64_t inner, int64_t columns) {
  return 2.0 * static_cast<double>(rows) * static_cast<double>(inner) *
         static_cast<double>(columns);
}

// "A" to "Z", then "M26".
std::string matrix_name(size_t i) {
  return i < 26 ? std::string(1, static_cast<char>('A' + i)) : "M" + std::to_string(i);
}

// The cheapest orders of all ranges of matrices.
class OrderTable {
 public:
  explicit OrderTable(std::span<const int64_t> extents)
      : extents_(extents), count_(extents.size() - 1), cells_(count_ * count_) {
    for (size_t length = 2; length <= count_; ++length)
      for (size_t first = 0; first + length <= count_; ++first) fill(first, first + length - 1);
  }

  double flops() const { return cells_[count_ - 1].flops; }
  std::string text(size_t first, size_t last) const {
    if (first == last) return matrix_name(first);
    const size_t split = cell(first, last).split;
    return "(" + text(first, split) + " " + text(split + 1, last) + ")";
  }

 private:
  struct Cell {
    double flops = 0;
    size_t split = 0;  // the last matrix of the left factor
  };

  const Cell& cell(size_t first, size_t last) const { return cells_[first * count_ + last]; }

  void fill(size_t first, size_t last) {
    Cell& best = cells_[first * count_ + last];
    best.flops = -1;
    for (size_t split = first; split < last; ++split) {
      const double flops = cell(first, split).flops + cell(split + 1, last).flops +
                           product_flops(extents_[first], extents_[split + 1], extents_[last + 1]);
      if (best.flops < 0 || flops < best.flops) best = {flops, split};
    }
  }

  std::span<const int64_t> extents_;
  size_t count_;
  std::vector<Cell> cells_;
};

// Finds products whose factors are products.
class ChainFinder {
 public:
  explicit ChainFinder(const Graph& graph) : graph_(graph), uses_(graph.values().size()) {
    for (NodeId id = 0; id < graph.forward_end(); ++id)
      for (const ValueId input : graph.node(id).inputs) ++uses_[input];
    for (const auto& [name, value] : graph.outputs()) ++uses_[value];
  }

  std::vector<ProductChain> run() {
    std::vector<ProductChain> chains;
    std::vector<bool> inside(graph_.values().size(), false);
    // Goes from the last product to the first, so that a chain is found before its parts.
    for (NodeId id = graph_.forward_end() - 1; id >= 0; --id) {
      const Node& node = graph_.node(id);
      if (!is_product(node) || inside[node.outputs[0]]) continue;
      ProductChain chain = {.layer = node.name, .extents = {}, .flops = 0, .best = {}};
      add(node, chain, inside);
      chain.extents.push_back(graph_.type(node.outputs[0]).shape[1]);
      if (chain.extents.size() < 4) continue;
      chain.best = best_product_order(chain.extents);
      chains.push_back(std::move(chain));
    }
    return chains;
  }

 private:
  bool is_product(const Node& node) const {
    return node.op->name == "matmul" && !node.attributes.flag("transpose_a") &&
           !node.attributes.flag("transpose_b") && graph_.type(node.inputs[0]).shape.rank() == 2 &&
           graph_.type(node.inputs[1]).shape.rank() == 2;
  }

  // Appends the factors of a product, from left to right.
  void add(const Node& node, ProductChain& chain, std::vector<bool>& inside) {
    chain.flops += node_flops(graph_, node);
    for (const ValueId input : node.inputs) {
      const NodeId producer = graph_.value(input).producer;
      const bool expands = producer >= 0 && uses_[input] == 1 && is_product(graph_.node(producer));
      if (expands) {
        inside[input] = true;
        add(graph_.node(producer), chain, inside);
      } else {
        chain.extents.push_back(graph_.type(input).shape[0]);
      }
    }
  }

  const Graph& graph_;
  std::vector<int> uses_;
};

}  // namespace

ProductOrder best_product_order(std::span<const int64_t> extents) {
  const OrderTable table(extents);
  return {table.flops(), table.text(0, extents.size() - 2)};
}

std::vector<ProductChain> product_chains(const Graph& graph) { return ChainFinder(graph).run(); }

}  // namespace artel::plan
