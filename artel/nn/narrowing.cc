#include "artel/nn/narrowing.h"

#include <charconv>
#include <memory>
#include <set>

#include "artel/base/error.h"
#include "artel/base/text.h"

namespace artel::nn {
namespace {

bool whole_number(const std::string& text, int64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

Layer with_units(LayerUnits units, Layer network) {
  return {network.kind(), [=](Build& build, Value x) {
            const std::string& scope = build.graph().scope();
            const size_t skipped = scope.empty() ? 0 : scope.size() + 1;
            const auto seen = std::make_shared<std::set<std::string>>();
            const auto before = build.set_units([=](const std::string& layer, int64_t given) {
              const std::string name = layer.size() < skipped ? "" : layer.substr(skipped);
              seen->insert(name);
              const auto found = units.find(name);
              if (found == units.end()) return given;
              require(found->second <= given, ErrorKind::invalid_argument,
                      "model.units: '{}' has {} units, expected at most that, got {}", name, given,
                      found->second);
              return found->second;
            });
            const Value y = network(build, x);
            build.set_units(before);
            for (const auto& [name, count] : units)
              require(seen->contains(name), ErrorKind::not_found,
                      "model.units: the network has no dense layer or convolution '{}'{}", name,
                      did_you_mean(name, {seen->begin(), seen->end()}));
            return y;
          }};
}

LayerUnits parse_units(const std::vector<std::string>& lines) {
  LayerUnits units;
  for (const std::string& line : lines) {
    const std::vector<std::string> words = split(line, ' ');
    int64_t count = 0;
    const bool right = words.size() == 2 && whole_number(words[1], count) && count > 0;
    require(right, ErrorKind::invalid_argument,
            "model.units: got '{}', expected a layer and a positive number such as "
            "'layer1.0.conv1 8'",
            line);
    units[words[0]] = count;
  }
  return units;
}

std::vector<std::string> units_text(const LayerUnits& units) {
  std::vector<std::string> lines;
  for (const auto& [name, count] : units) lines.push_back(fmt::format("{} {}", name, count));
  return lines;
}

}  // namespace artel::nn
