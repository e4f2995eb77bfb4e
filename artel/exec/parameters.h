// The parameters and states of a model in memory, in the layouts that kernels want.
//
// One contiguous block, each entry on a cache line. Users and files see plain row-major tensors
// through get and set; optimizers work in place on `values`.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "artel/exec/layout.h"
#include "artel/graph/graph.h"

namespace artel {

struct ParameterEntry {
  std::string name;
  Shape shape;
  Layout layout;
  bool trained = true;  // false: a state
  size_t offset = 0;    // in floats
};

class Parameters {
 public:
  Parameters() = default;
  explicit Parameters(std::vector<ParameterEntry> entries);

  const std::vector<ParameterEntry>& entries() const { return entries_; }
  bool contains(std::string_view name) const;
  // Throws for an unknown name, with the nearest known one.
  const ParameterEntry& entry(std::string_view name) const;

  std::span<float> values(const ParameterEntry& entry);
  // All entries, with the padding between them.
  std::span<float> block() { return {reinterpret_cast<float*>(memory_.get()), floats_}; }
  std::span<const float> values(const ParameterEntry& entry) const;

  Tensor get(std::string_view name) const;
  // Throws if the shape differs; other floating types are converted.
  void set(std::string_view name, const Tensor& value);

 private:
  std::vector<ParameterEntry> entries_;
  std::shared_ptr<std::byte> memory_;
  size_t floats_ = 0;
};

}  // namespace artel
