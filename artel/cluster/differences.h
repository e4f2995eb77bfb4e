// Compares the options of two workers: texts with a fact "name = value" per line.
#pragma once

#include <string>
#include <vector>

namespace artel {

struct Difference {
  std::string key;         // unique name of the fact
  std::string own, other;  // its lines; empty if the text lacks the fact
};

// The facts that differ between the texts, in the order of `other`.
std::vector<Difference> differences(const std::string& own, const std::string& other);

// Joins descriptions of differences. Shows the first eight and the number of the rest.
std::string listed(std::vector<std::string> descriptions);

}  // namespace artel
