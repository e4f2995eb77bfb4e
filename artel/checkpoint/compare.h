// Bitwise comparison of checkpoints.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "artel/tensor/named_tensor.h"

namespace artel::checkpoint {

// The first place where two sets of tensors differ.
struct Difference {
  std::string tensor;
  int64_t index = -1;         // row-major element index; -1 if the whole tensors differ
  std::string first, second;  // values with their bits, or shapes, types, or absence
  // Checkpoint::state of each side; empty for weight files.
  std::string first_state = {}, second_state = {};

  // "conv1.weight[17]: 0.25 (0x3e800000) and 0.5 (0x3f000000)".
  std::string describe() const;
};

// The first difference in the order of `a`; the order of `b` is ignored. Compares bits: 0 and -0
// differ, identical NaNs are equal.
std::optional<Difference> compare(const NamedTensors& a, const NamedTensors& b);

// Each path is a weight file, a checkpoint, a folder of checkpoints, or a run folder. Of several
// checkpoints, uses the newest complete one, including its optimizer state.
std::optional<Difference> compare_checkpoints(const std::filesystem::path& a,
                                              const std::filesystem::path& b);

}  // namespace artel::checkpoint
