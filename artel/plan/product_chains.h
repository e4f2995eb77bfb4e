// The order of chained matrix products.
//
// (A B) C and A (B C) are equal up to rounding, and their costs can differ by orders of magnitude.
// Dynamic programming over ranges of matrices finds the cheapest order in O(n^3). A plan only
// reports it: reordering the graph would change the bits of the result.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "artel/graph/graph.h"

namespace artel::plan {

struct ProductOrder {
  double flops = 0;
  std::string text;  // "((A B) C)"
};

// For matrices of extents[i] x extents[i + 1]; at least one.
ProductOrder best_product_order(std::span<const int64_t> extents);

// A chain of at least three matrices in the forward pass, whose products are used only there.
struct ProductChain {
  std::string layer;  // of the last product
  std::vector<int64_t> extents;
  double flops = 0;  // as built
  ProductOrder best;
};
std::vector<ProductChain> product_chains(const Graph& graph);

}  // namespace artel::plan
