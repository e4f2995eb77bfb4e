// Random graphs of ops, for what networks as text do not reach: every op, ranks 0 to 5, values and
// parameters used several times, broadcasting. Compared with the reference like networks are.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace artel::model_fuzz {

// What is wrong with the graph that this seed makes, with its smallest form as text; or nothing.
std::optional<std::string> wrong_graph(uint64_t seed);

}  // namespace artel::model_fuzz
