// Random graphs of ops, for what text networks cannot express: every op, ranks 0 to 5, values and
// parameters used several times, broadcasting. Compared with the reference like networks are.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace artel::model_fuzz {

struct GraphCase {
  uint64_t seed = 0;  // of the parameters
  std::vector<uint64_t> recipes;
  bool large = false;
};

GraphCase random_graph(uint64_t seed);

// The problem with the graph, or an empty text.
std::optional<std::string> what_is_wrong(const GraphCase& graph);

// The fewest recipes with the same fault, as for networks.
using FindInGraph = std::function<std::optional<std::string>(const GraphCase&)>;
GraphCase reduce(GraphCase graph, const std::string& wrong, const FindInGraph& find);

// One line that makes the same graph again, with these recipes, and the graph as comments.
std::string to_text(const GraphCase& graph);
// Throws an Error for other text.
GraphCase parse_graph(std::string_view text, std::string_view name);

}  // namespace artel::model_fuzz
