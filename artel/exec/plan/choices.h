// The kernel algorithm chosen for each shape. Choices made by timing are recorded, so that timing
// noise never changes bits.
//
// Without tuning, a fixed rule selects an algorithm by shape. With `tune`, each new shape is
// measured once. The choices are saved with the run and its checkpoints and sent to all workers.
//
//   // Reuse the measurements of another run.
//   artel::KernelChoices choices = artel::parse_choices(to_string(trainer.choices()));
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace artel {

class Device;

struct KernelChoices {
  // The device of programs compiled with these choices; null for the CPU.
  Device* device = nullptr;
  bool exact_convolutions = false;  // forbids Winograd
  bool bf16 = false;                // products round their operands to bf16 and sum in f32
  bool tune = false;
  std::map<std::string, std::string> chosen;  // shape -> algorithm

  // Returns the algorithm for `key`: the recorded choice if there is one. Otherwise, when tuning,
  // measures the candidates with `seconds` and records the fastest; else returns `fallback`.
  std::string choose(const std::string& key, const std::vector<std::string>& candidates,
                     const std::string& fallback,
                     const std::function<double(const std::string&)>& seconds);
};

// One line per choice: `shape = algorithm`. Parsing throws an Error of kind corrupt.
std::string to_string(const KernelChoices& choices);
KernelChoices parse_choices(std::string_view text);

}  // namespace artel
