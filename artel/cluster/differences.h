// Compares how two workers were started: texts with a fact "name = value" on each line.
#pragma once

#include <string>
#include <vector>

namespace artel {

struct Difference {
  std::string key;         // tells the fact from all others of the text
  std::string own, other;  // its lines; empty: the text has no such fact
};

// The facts that are not the same in both texts, in the order of `other`.
std::vector<Difference> differences(const std::string& own, const std::string& other);

// Joins descriptions of differences. Shows the first eight and the number of the rest.
std::string listed(std::vector<std::string> descriptions);

}  // namespace artel
