// Whether two checkpoints are the same, bit for bit.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "artel/tensor/named_tensor.h"

namespace artel::checkpoint {

// The first place where two sets of tensors differ.
struct Difference {
  std::string tensor;
  int64_t index = -1;         // of the element, row-major; -1 if the tensors differ as a whole
  std::string first, second;  // the values with their bits, or what differs: shapes, types, absence
  // Checkpoint::state of both; empty for weight files.
  std::string first_state = {}, second_state = {};

  // "conv1.weight[17]: 0.25 (0x3e800000) and 0.5 (0x3f000000)".
  std::string describe() const;
};

// In the order of `a`; the order of `b` does not matter. Compares bits: 0 and -0 differ, identical
// NaNs do not.
std::optional<Difference> compare(const NamedTensors& a, const NamedTensors& b);

// Each path is a weight file, a checkpoint, a folder of checkpoints, or the folder of a run, with a
// sub-folder `checkpoints`; of several checkpoints the newest complete one is used, including its
// optimizer state.
std::optional<Difference> compare_checkpoints(const std::filesystem::path& a,
                                              const std::filesystem::path& b);

}  // namespace artel::checkpoint
