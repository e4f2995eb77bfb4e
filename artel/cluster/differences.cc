#include "artel/cluster/differences.h"

#include <fmt/format.h>

#include <map>

#include "artel/base/text.h"

namespace artel {
namespace {

// Numbers facts with the same name, such as the lines of a network.
struct FactLines {
  std::vector<std::string> order;  // keys
  std::map<std::string, std::string> lines;
};

FactLines fact_lines(const std::string& text) {
  FactLines facts;
  std::map<std::string, int> seen;
  for (const std::string& line : split(text, '\n')) {
    if (line.empty()) continue;
    const std::string name = line.substr(0, line.find(" = "));
    const std::string key = fmt::format("{} {}", name, seen[name]++);
    facts.order.push_back(key);
    facts.lines[key] = line;
  }
  return facts;
}

}  // namespace

std::vector<Difference> differences(const std::string& own, const std::string& other) {
  if (own == other) return {};
  FactLines mine = fact_lines(own), theirs = fact_lines(other);
  std::vector<std::string> keys = theirs.order;
  for (const std::string& key : mine.order)
    if (!theirs.lines.contains(key)) keys.push_back(key);
  std::vector<Difference> found;
  for (const std::string& key : keys)
    if (mine.lines[key] != theirs.lines[key])
      found.push_back({key, mine.lines[key], theirs.lines[key]});
  return found;
}

std::string listed(std::vector<std::string> descriptions) {
  constexpr size_t kMost = 8;
  const size_t all = descriptions.size();
  if (all <= kMost) return join(descriptions, "; ");
  descriptions.resize(kMost);
  return fmt::format("{}; and {} more", join(descriptions, "; "), all - kMost);
}

}  // namespace artel
