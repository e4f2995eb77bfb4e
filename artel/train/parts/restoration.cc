#include "artel/train/parts/restoration.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

namespace artel {
namespace {

using Sources = std::vector<Restoration::Source>;

// Selects ranges that cover the tensor and cuts them so that they do not overlap. Empty if a part
// is missing.
Sources cover(Sources ranges, size_t elements) {
  std::stable_sort(ranges.begin(), ranges.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  Sources chosen;
  size_t end = 0;
  for (size_t next = 0; end < elements;) {
    const Restoration::Source* best = nullptr;
    for (; next < ranges.size() && ranges[next].first <= end; ++next)
      if (!best || ranges[next].first + ranges[next].count > best->first + best->count)
        best = &ranges[next];
    if (!best || best->first + best->count <= end) return {};
    const size_t reach = std::min(elements, best->first + best->count);
    chosen.push_back({best->worker, end, reach - end, best->name});
    end = reach;
  }
  return chosen;
}

}  // namespace

std::string inventory_text(const std::vector<const StateCopy*>& copies) {
  std::string text;
  for (const StateCopy* copy : copies)
    for (const CopiedRange& range : copy->ranges)
      text += fmt::format("{} {} {} {} {}\n", copy->step, copy->text.empty() ? 0 : 1, range.first,
                          range.values.size(), range.name);
  return text;
}

Inventory inventory_in(const std::string& text) {
  Inventory inventory;
  std::istringstream lines(text);
  Inventory::Entry entry;
  while (lines >> entry.step >> entry.has_text >> entry.first >> entry.count && lines.ignore() &&
         std::getline(lines, entry.name))
    inventory.entries.push_back(entry);
  return inventory;
}

std::string to_text(const Restoration& restoration) {
  std::string text = fmt::format("{} {}\n", restoration.step, restoration.text_from);
  for (const Restoration::Source& source : restoration.sources)
    text += fmt::format("{} {} {} {}\n", source.worker, source.first, source.count, source.name);
  return text;
}

Restoration restoration_in(const std::string& text) {
  Restoration restoration;
  std::istringstream lines(text);
  lines >> restoration.step >> restoration.text_from;
  Restoration::Source source;
  while (lines >> source.worker >> source.first >> source.count && lines.ignore() &&
         std::getline(lines, source.name))
    restoration.sources.push_back(source);
  return restoration;
}

Restoration plan_restoration(const std::vector<Inventory>& workers,
                             const std::function<size_t(const std::string& name)>& elements) {
  std::set<std::string> names;
  std::map<int64_t, std::map<std::string, Sources>, std::greater<>> by_step;
  std::map<int64_t, int> text_from;
  for (size_t worker = 0; worker < workers.size(); ++worker)
    for (const Inventory::Entry& entry : workers[worker].entries) {
      names.insert(entry.name);
      by_step[entry.step][entry.name].push_back(
          {static_cast<int>(worker), entry.first, entry.count, entry.name});
      if (entry.has_text) text_from.emplace(entry.step, static_cast<int>(worker));
    }
  for (const auto& [step, there] : by_step) {
    if (!text_from.contains(step) || there.size() < names.size()) continue;
    Restoration restoration = {.step = step, .text_from = text_from[step]};
    const bool whole = std::ranges::all_of(there, [&](const auto& tensor) {
      const Sources chosen = cover(tensor.second, elements(tensor.first));
      restoration.sources.insert(restoration.sources.end(), chosen.begin(), chosen.end());
      return !chosen.empty() || elements(tensor.first) == 0;
    });
    if (whole) return restoration;
  }
  return {};
}

}  // namespace artel
