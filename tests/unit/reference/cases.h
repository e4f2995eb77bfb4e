// Random small uses of every op, for the tests that compare rules with each other.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "tests/unit/exec/graph_harness.h"

namespace artel::reference {

// One use: the shapes of parameters p0, p1, ..., and what is computed of them (of any shape).
struct Use {
  std::vector<Shape> shapes;
  tests::Function function;
};

struct Case {
  std::string name;
  std::function<Use(Random&)> draw;  // sizes and settings
  tests::Range range = {};           // of the parameters
  bool large = false;                // too large for central differences
};

inline void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

std::vector<Case> all_cases();

}  // namespace artel::reference
