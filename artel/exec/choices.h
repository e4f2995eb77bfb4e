// Which algorithm runs which shape: whatever timing decides is written down, so noise never changes
// bits.
//
// Without tuning a fixed rule by shape decides. With `tune` each new shape is measured once; the
// choices are then saved with the run and its checkpoints and sent to every worker.
//
//   // What was measured in one run decides in another.
//   artel::KernelChoices choices = artel::parse_choices(to_string(trainer.choices()));
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace artel {

struct KernelChoices {
  bool exact_convolutions = false;  // forbids Winograd
  bool bf16 = false;                // products round their operands to bf16 and sum in f32
  bool tune = false;
  std::map<std::string, std::string> chosen;  // shape -> algorithm

  // The algorithm for `key`: a recorded choice, the fastest of the candidates by `seconds`
  // (recorded) when tuning, or the fallback.
  std::string choose(const std::string& key, const std::vector<std::string>& candidates,
                     const std::string& fallback,
                     const std::function<double(const std::string&)>& seconds);
};

// One line for each choice: `shape = algorithm`. Reading throws an Error of kind corrupt.
std::string to_string(const KernelChoices& choices);
KernelChoices parse_choices(std::string_view text);

}  // namespace artel
