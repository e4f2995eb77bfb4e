#include "artel/exec/plan/choices.h"

#include <fmt/format.h>

#include <algorithm>

#include "artel/base/error.h"
#include "artel/base/text.h"

namespace artel {

std::string KernelChoices::choose(const std::string& key,
                                  const std::vector<std::string>& candidates,
                                  const std::string& fallback,
                                  const std::function<double(const std::string&)>& seconds) {
  const auto found = chosen.find(key);
  if (found != chosen.end()) {
    if (std::find(candidates.begin(), candidates.end(), found->second) != candidates.end())
      return found->second;
    fail(ErrorKind::invalid_argument,
         "[choices] '{}' asks for '{}', which cannot run it; expected one of {}", key,
         found->second, join(candidates, ", "));
  }
  if (!tune || candidates.size() < 2) return fallback;
  std::string best = fallback;
  double best_seconds = seconds(fallback);
  for (const std::string& candidate : candidates) {
    if (candidate == fallback) continue;
    const double time = seconds(candidate);
    if (time < best_seconds) {
      best_seconds = time;
      best = candidate;
    }
  }
  chosen[key] = best;
  return best;
}

std::string to_string(const KernelChoices& choices) {
  std::string text = fmt::format("exact_convolutions = {:d}\nbf16 = {:d}\n",
                                 choices.exact_convolutions, choices.bf16);
  for (const auto& [key, algorithm] : choices.chosen)
    text += fmt::format("{} = {}\n", key, algorithm);
  return text;
}

KernelChoices parse_choices(std::string_view text) {
  KernelChoices choices;
  int number = 0;
  for (const std::string& line : split(text, '\n')) {
    ++number;
    if (trim(line).empty()) continue;
    const size_t equals = line.find(" = ");
    require(equals != std::string::npos && std::ranges::count(line, '=') == 1, ErrorKind::corrupt,
            "[choices] line {}: got '{}', expected 'shape = algorithm'", number, line);
    const std::string key(trim(line.substr(0, equals))), value(trim(line.substr(equals + 3)));
    if (key == "exact_convolutions")
      choices.exact_convolutions = value == "1";
    else if (key == "bf16")
      choices.bf16 = value == "1";
    else
      choices.chosen[key] = value;
  }
  return choices;
}

}  // namespace artel
